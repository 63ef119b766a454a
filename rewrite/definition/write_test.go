package definition_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// op is a node of the op with a growing cache, after a change.
func op(t *testing.T, change func(*customop.RotaryAttention)) *onnx.Node {
	t.Helper()
	r := customop.RotaryAttention{
		Query: "q", Key: "k", Value: "v", PastKey: "pk", PastValue: "pv", PositionIDs: "p", AttentionMask: "m",
		Output: "o", PresentKey: "nk", PresentValue: "nv",
		NumHeads: 4, KVNumHeads: 2, Scale: 0.25, Causal: 1, Frequencies: []float32{1, 0.1},
	}
	change(&r)
	node, err := r.Node("op")
	if err != nil {
		t.Fatal(err)
	}
	return ir.FromCustom(node)
}

func same(*customop.RotaryAttention)       {}
func windowed(r *customop.RotaryAttention) { r.Window = 16 }
func banded(r *customop.RotaryAttention) {
	r.BandStarts, r.BandQueryOffsets = []int64{0, 8}, []float32{0, -4}
}

func modelOf(opset int64, nodes ...*onnx.Node) *onnx.Model {
	m := onnx.New()
	m.RequireIR(7)
	m.RequireOpset("", opset)
	m.RequireOpset(customop.Domain, 1)
	m.Graph.Nodes = nodes
	return m
}

// Nodes that differ in numbers share a function; those of another structure have another
// name of the op, which needs a library that knows it.
func TestNames(t *testing.T) {
	for name, c := range map[string]struct {
		changes []func(*customop.RotaryAttention)
		want    []string // names of the nodes
	}{
		"alike":       {[]func(*customop.RotaryAttention){same, func(r *customop.RotaryAttention) { r.Scale, r.Frequencies = 0.5, []float32{2, 0.2} }}, []string{"", ""}},
		"windows":     {[]func(*customop.RotaryAttention){windowed, same, windowed}, []string{"", "", ""}},
		"gains":       {[]func(*customop.RotaryAttention){same, func(r *customop.RotaryAttention) { r.Gain = 1.2 }}, []string{"", ""}},
		"bands":       {[]func(*customop.RotaryAttention){same, banded, same}, []string{"", "_2", ""}},
		"no rotation": {[]func(*customop.RotaryAttention){banded, func(r *customop.RotaryAttention) { r.Frequencies = nil }, same}, []string{"", "_2", "_3"}},
		"inputs":      {[]func(*customop.RotaryAttention){same, func(r *customop.RotaryAttention) { r.AttentionMask = "" }}, []string{"", "_2"}},
		"outputs":     {[]func(*customop.RotaryAttention){same, func(r *customop.RotaryAttention) { r.LogSumExp = "l" }}, []string{"", "_2"}},
		"layouts":     {[]func(*customop.RotaryAttention){same, func(r *customop.RotaryAttention) { r.RotaryLayout = "interleaved" }}, []string{"", "_2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []*onnx.Node
			for _, change := range c.changes {
				nodes = append(nodes, op(t, change))
			}
			m := modelOf(17, nodes...)
			functions, err := definition.Write(m)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for i, n := range nodes {
				names = append(names, strings.TrimPrefix(n.OpType, "RotaryAttention"))
				if numbered := n.OpType != "RotaryAttention"; numbered != (n.Int("spec_version", 0) >= customop.NumberedSince) {
					t.Errorf("node %d, %s, is of specification %d", i, n.OpType, n.Int("spec_version", 0))
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("the names are %q, want %q", names, c.want)
			}
			if distinct := slices.Compact(slices.Sorted(slices.Values(names))); len(functions) != len(distinct) || len(m.Functions) != len(distinct) || m.IRVersion != 8 {
				t.Errorf("%d functions, %d in a model of IR version %d, for %d names", len(functions), len(m.Functions), m.IRVersion, len(distinct))
			}
			for _, n := range nodes {
				f := functions[slices.IndexFunc(functions, func(f *onnx.Function) bool { return f.Name == n.OpType })]
				for _, b := range f.Nodes {
					for _, a := range b.Attributes {
						if a.RefName != "" && n.Attribute(a.RefName) == nil {
							t.Errorf("%s lacks the attribute %s, which its function reads", n.OpType, a.RefName)
						}
					}
				}
				for _, a := range n.Attributes {
					if !slices.Contains(f.AttributeNames, a.Name) {
						t.Errorf("%s has the attribute %s, which its function does not declare", n.OpType, a.Name)
					}
				}
			}
			definition.Remove(m)
			for _, n := range nodes {
				if n.OpType != "RotaryAttention" {
					t.Errorf("a node is still called %s", n.OpType)
				}
			}
			if len(m.Functions) != 0 {
				t.Error("functions are left")
			}
		})
	}
}

// Attributes that a body reads are spelled out, and the node asks for a library that knows
// them.
func TestSpelledOut(t *testing.T) {
	first, second := op(t, same), op(t, func(r *customop.RotaryAttention) { r.Window, r.FirstKeys = 16, 4 })
	if _, err := definition.Write(modelOf(17, first, second)); err != nil {
		t.Fatal(err)
	}
	if a := first.Attribute("first_keys"); a == nil || a.Int != 0 {
		t.Error("first_keys is not spelled out")
	}
	if v := first.Int("spec_version", 0); v != 2 {
		t.Errorf("first_keys came with specification 2, the node says %d", v)
	}
}

func TestUndefined(t *testing.T) {
	for name, c := range map[string]struct {
		m    func(*testing.T) *onnx.Model
		want string
	}{
		"an old operator set": {func(t *testing.T) *onnx.Model { return modelOf(12, op(t, same)) }, "the fallback needs opset 13, but the model uses opset 12"},
		"too many structures": {func(t *testing.T) *onnx.Model {
			var nodes []*onnx.Node
			for bands := range 9 {
				nodes = append(nodes, op(t, func(r *customop.RotaryAttention) {
					for b := range bands {
						r.BandStarts = append(r.BandStarts, int64(b))
					}
				}))
			}
			nodes = append(nodes, op(t, func(r *customop.RotaryAttention) { r.Frequencies = nil }))
			return modelOf(17, nodes...)
		}, "9 different structures, more than the 8 names of the op"},
		"a foreign node": {func(t *testing.T) *onnx.Model {
			n := op(t, same)
			n.OpType = "RotaryAttention_99"
			return modelOf(17, n)
		}, "it is not a RotaryAttention"},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.m(t)
			_, err := definition.Write(m)
			if !errors.Is(err, definition.ErrUndefined) || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
			if len(m.Functions) != 0 || m.IRVersion != 7 {
				t.Errorf("the model has %d functions and IR version %d", len(m.Functions), m.IRVersion)
			}
			removed := c.m(t)
			definition.Remove(removed)
			got, err := m.Marshal()
			want, wantErr := removed.Marshal()
			if err != nil || wantErr != nil || !bytes.Equal(got, want) {
				t.Errorf("the model is not as Remove leaves it (%v, %v)", err, wantErr)
			}
		})
	}
}

// A function reads no more of past than the node that writes present, so that both may be
// one buffer.
func TestPastIsReadOnce(t *testing.T) {
	for name, change := range map[string]func(*customop.RotaryAttention){
		"fixed":         func(r *customop.RotaryAttention) { r.CacheLength = "c" },
		"fixed, raw":    func(r *customop.RotaryAttention) { r.CacheLength, r.Cache = "c", "raw" },
		"fixed, banded": func(r *customop.RotaryAttention) { r.CacheLength = "c"; banded(r) },
	} {
		f, err := definition.Body(op(t, change), false, 17)
		if err != nil {
			t.Fatal(err)
		}
		for _, past := range []string{"past_key", "past_value"} {
			var readers []string
			for _, n := range f.Nodes {
				if slices.Contains(n.Inputs, past) {
					readers = append(readers, n.OpType)
				}
			}
			if !slices.Equal(readers, []string{"ScatterND"}) {
				t.Errorf("%s: %s is read by %q", name, past, readers)
			}
		}
	}
}

// Without CastLike a body serves one element type.
func TestServes(t *testing.T) {
	for _, element := range []onnx.DataType{onnx.Float16, onnx.BFloat16} {
		if err := definition.Serves(14, element); !errors.Is(err, definition.ErrUndefined) {
			t.Errorf("%v at version 14: the error is %v", element, err)
		}
		if err := definition.Serves(15, element); err != nil {
			t.Errorf("%v at version 15: %v", element, err)
		}
	}
	if err := definition.Serves(13, onnx.Float); err != nil {
		t.Error(err)
	}
}
