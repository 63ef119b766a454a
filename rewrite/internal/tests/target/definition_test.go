package target_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A rewritten model carries a function for each structure of its ops, and none where that
// is not wanted. The record names no nodes by that.
func TestDefinition(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	bands := []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=40,window=9")}
	for name, c := range testsample.OfMap(t, map[string]struct {
		export string
		opts   rewrite.Options
		want   []string
	}{
		"one structure":       {"llama__optimum", rewrite.Options{Edits: bands}, []string{"RotaryAttention"}},
		"16 bits":             {"llama__dynamo18-fp16", rewrite.Options{Edits: bands}, []string{"RotaryAttention"}},
		"fixed":               {"llama__optimum", rewrite.Options{Cache: rewrite.Cache{Capacity: 32}}, []string{"RotaryAttention"}},
		"a windowed layer":    {"gemma3_text__dynamo18", rewrite.Options{}, []string{"RotaryAttention"}},
		"bands on one layer":  {"gemma3_text__dynamo18", rewrite.Options{Edits: bands}, []string{"RotaryAttention", "RotaryAttention_2"}},
		"in graphs of an If":  {"gpt_neox__dynamo18-merged", rewrite.Options{}, []string{"RotaryAttention", "RotaryAttention_2"}},
		"none":                {"llama__optimum", rewrite.Options{Output: rewrite.Output{NoFallback: true}}, nil},
		"the model's own ops": {"llama__optimum", rewrite.Options{Target: rewrite.PlainONNX, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}}, nil},
	}, 3) {
		t.Run(name, func(t *testing.T) {
			path, report := kit.Patch(t, kit.Model(c.export), c.opts)
			var got []string
			if report.Fallback != nil {
				got = report.Fallback.Ops
				if report.Fallback.MaxError <= 0 || report.Fallback.MaxError > 1e-5 {
					t.Errorf("its proof found an error of %g", report.Fallback.MaxError)
				}
			}
			m := kit.OpenModel(t, path)
			var carried []string
			for _, f := range m.Functions {
				carried = append(carried, f.Name)
			}
			if !slices.Equal(got, c.want) || !slices.Equal(carried, c.want) {
				t.Errorf("the report has %q and the model %q, want %q", got, carried, c.want)
			}
			for n := range m.Graph.AllNodes() {
				if n.Domain == customop.Domain && c.want != nil && !slices.Contains(c.want, n.OpType) {
					t.Errorf("the node %s is called %s", n.Name, n.OpType)
				}
			}
			seen, err := rewrite.Inspect(context.Background(), m, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if (seen.Fallback != nil) != (c.want != nil) {
				t.Errorf("inspect says %v of its definition", seen.Fallback)
			}
		})
	}
}

// A model that another program gave a definition is right or refused: its function is
// proven, however it is written.
func TestForeignDefinition(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	path, _ := kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=40,window=9")}})
	first := func(f *onnx.Function, op string) *onnx.Node {
		i := slices.IndexFunc(f.Nodes, func(n *onnx.Node) bool { return n.OpType == op })
		if i < 0 {
			t.Fatalf("the function has no %s", op)
		}
		return f.Nodes[i]
	}
	for name, c := range testsample.OfMap(t, map[string]struct {
		change func(*onnx.Function)
		right  bool
	}{
		"as written": {func(*onnx.Function) {}, true},
		"other names": {func(f *onnx.Function) {
			for _, n := range f.Nodes {
				for i, v := range n.Inputs {
					if v == "scores" {
						n.Inputs[i] = "renamed"
					}
				}
				if n.Outputs[0] == "scores" {
					n.Outputs[0] = "renamed"
				}
			}
		}, true},
		"a plus for a minus":    {func(f *onnx.Function) { first(f, "Sub").OpType = "Add" }, false},
		"another comparison":    {func(f *onnx.Function) { first(f, "LessOrEqual").OpType = "Less" }, false},
		"no second band":        {func(f *onnx.Function) { n := first(f, "Where"); n.Inputs[1] = n.Inputs[2] }, false},
		"an operator of no one": {func(f *onnx.Function) { first(f, "Softmax").OpType = "Softmaximum" }, false},
	}, 2) {
		t.Run(name, func(t *testing.T) {
			m := kit.OpenModel(t, path)
			c.change(m.Functions[0])
			changed := filepath.Join(t.TempDir(), "changed.onnx")
			if err := m.Save(changed, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, changed), rewrite.Options{Earlier: rewrite.Earlier{Restore: true}})
			if c.right && err != nil {
				t.Errorf("it was refused: %v", err)
			}
			if !c.right && (!errors.Is(err, rewrite.ErrForeignFallback) || !strings.Contains(err.Error(), "start from the original file")) {
				t.Errorf("the error is %v", err)
			}
			report, err := rewrite.Inspect(context.Background(), kit.OpenModel(t, changed), rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if warned := slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "of its own") }); warned == c.right {
				t.Errorf("inspect warns: %q", report.Warnings)
			}
		})
	}
}
