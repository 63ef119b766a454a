package feature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// UnchangedError says that a cache of fixed capacity needs every attention, and one stays unchanged.
type UnchangedError struct {
	Layer  int
	Reason string
}

func (e *UnchangedError) Error() string {
	return fmt.Sprintf("for a cache of fixed capacity every attention layer must be rewritten, and layer %d is unchanged: %s", e.Layer, e.Reason)
}

func (a Asked) checkCache(m *onnx.Model, frees func(string) bool, _ int64) error {
	if _, known := definition.CacheTypes[a.CacheType]; !known && a.CacheType != "" {
		return fmt.Errorf("type=%s: expected float16, bfloat16 or int8", a.CacheType)
	}
	if a.FixedCapacity == 0 {
		return nil
	}
	const what, remedy = "cache lengths", "--kv fixed:capacity=N,input=NAME"
	if a.CacheLength == a.Documents {
		return nameTaken(a.CacheLength, what, remedy)
	}
	if err := freeName(m, frees, a.CacheLength, what, remedy); err != nil {
		return err
	}
	if a.FixedCapacity < 0 || a.FixedCapacity > math.MaxInt32 {
		return fmt.Errorf("a cache of %d tokens: expected a capacity from 1 to %d", a.FixedCapacity, math.MaxInt32)
	}
	return nil
}

// caches gives the caches of every site another form. With a capacity the past inputs and
// present outputs become buffers [batch, kv heads, capacity, head size], and an input says how
// many tokens each row holds: whatever else would read the length of the past from a buffer's
// shape must be gone. With a type they get that element type, and of int8 a scale for each row
// beside them.
type caches struct {
	input    string                 // int32 [batch]
	capacity int64                  // 0 leaves them growing
	typ      string                 // "" leaves it
	scales   map[int]contrib.Scales // fixed ones, by layer; nil where the op makes them
	ring     bool                   // of layers with a window the buffers are rings
	rows     map[string]int64       // of those that are, by name
	values   map[string]bool        // the past inputs and present outputs
	masks    map[string]bool        // the padding masks, whose width says the length no more
}

func changedCache(_ context.Context, asked Asked, of Subject) (*plan.Feature, error) {
	if asked.FixedCapacity == 0 && asked.CacheType == "" {
		return nil, nil
	}
	for _, s := range of.Analysis.Sites {
		if s.Unchanged != "" && asked.FixedCapacity != 0 {
			return nil, &UnchangedError{s.Layer, s.Reason}
		}
	}
	for _, layer := range slices.Sorted(maps.Keys(asked.CacheScales)) {
		if n := len(of.Analysis.Sites); layer < 0 || layer >= n {
			return nil, &plan.LayerError{Layer: plan.WholeModel, Err: plan.Of("kv", fmt.Errorf("there are scales for layer %d, and the model has the layers 0 to %d", layer, n-1))}
		}
	}
	f := &caches{input: asked.CacheLength, capacity: asked.FixedCapacity, typ: asked.CacheType, scales: asked.CacheScales, ring: asked.CacheRing, rows: map[string]int64{}, values: map[string]bool{}, masks: map[string]bool{}}
	return &plan.Feature{
		Edit:  f.edit(),
		Extra: func(s *plan.Site) error { return f.add(of.Model, s) },
		Write: f.write,
	}, nil
}

// edit is what was asked for, as records have it.
func (f *caches) edit() provenance.Edit {
	edit := provenance.Edit{What: "kv", Given: "growing:"}
	if f.capacity > 0 {
		edit.Given = fmt.Sprintf("fixed:capacity=%d,input=%s", f.capacity, f.input)
		edit.Settings = []rope.Setting{{Name: "capacity", Value: rope.Integer(f.capacity), From: rope.Given}, {Name: "input", Value: rope.Text(f.input), From: rope.Given}}
	}
	if f.ring {
		edit.Given += ",ring=true"
		edit.Settings = append(edit.Settings, rope.Setting{Name: "ring", Value: rope.Bool(true), From: rope.Given})
	}
	if f.typ != "" {
		if f.capacity > 0 {
			edit.Given += ","
		}
		edit.Given += "type=" + f.typ
		edit.Settings = append(edit.Settings, rope.Setting{Name: "type", Value: rope.Text(f.typ), From: rope.Given})
	}
	if f.scales != nil {
		edit.Settings = append(edit.Settings, rope.Setting{Name: "scales", Value: rope.Text("fixed"), From: rope.Given})
	}
	return edit
}

// add notes the cache of one site, or says why it cannot be changed.
func (f *caches) add(m *onnx.Model, e *plan.Site) error {
	w := e.Binding
	if e.Want.Cross && f.capacity == 0 {
		return nil // it has no cache that grows
	}
	switch {
	case e.Scope.Where != "":
		return fmt.Errorf("it is in %s, whose cache cannot be changed", short.Name(e.Scope.Where))
	case w.LengthTracked != nil && f.capacity == 0:
		return errors.New("its cache is GroupQueryAttention's, whose type cannot be changed; drop --kv")
	case w.LengthTracked != nil:
		return errors.New("its cache already has a fixed capacity (GroupQueryAttention's: past and present may be one buffer, and seqlens_k has the lengths); drop --kv")
	case w.Slots != nil:
		return errors.New("its cache already has a fixed capacity, and an input of the model says where new tokens are written; drop --kv")
	case w.Latent != nil:
		return errors.New("its cache holds latent states, from which every call computes keys and values again, so it cannot be changed")
	case f.capacity > 0 && e.Written == nil && len(e.Site.Biases) > 0:
		return errors.New("the bias on its scores is computed from hidden states of all tokens, so the model would treat unused rows of a buffer as tokens; drop --kv")
	case w.PastKey == "":
		return errors.New("it has no key-value cache that could be changed")
	}
	for _, past := range []string{w.PastKey, w.PastValue} {
		v := ir.Named(m.Graph.Inputs, past)
		if v == nil || len(v.Shape) != 4 {
			return fmt.Errorf("its cache %q is not a model input of rank 4, so it cannot be changed", short.Name(past))
		}
		if v.Type != onnx.Float && f.typ != "" && f.typ != "int8" {
			return fmt.Errorf("its cache %q has elements of %v; only caches of float32 can become %s", short.Name(past), v.Type, f.typ)
		}
	}
	for _, present := range []string{w.PresentKey, w.PresentValue} {
		if ir.Named(m.Graph.Outputs, present) == nil {
			return fmt.Errorf("its cache %q is not an output of the model", short.Name(present))
		}
	}
	for _, v := range []string{w.PastKey, w.PastValue, w.PresentKey, w.PresentValue} {
		if f.scaled() && taken(m, scaleName(v)) {
			return nameTaken(scaleName(v), "a cache's scales", "drop type=int8")
		}
		f.values[v] = true
	}
	if w.Mask != nil {
		f.masks[w.Mask.Name] = true
	}
	if f.capacity > 0 {
		e.Extra.CacheLength = f.input
	}
	rows, err := f.ringRows(e)
	if err != nil {
		return err
	}
	if e.Extra.CacheRing = rows > 0; rows > 0 {
		for _, v := range []string{w.PastKey, w.PastValue, w.PresentKey, w.PresentValue} {
			f.rows[v] = rows
		}
	}
	if f.scales == nil {
		e.Extra.CacheType = f.typ
		return nil
	}
	scales, given := f.scales[e.Layer]
	if !given {
		return errors.New("there are no scales for its cache (--kv-scales)")
	}
	if err := scales.Check(e.Want.KVHeads, e.Want.HeadSize); err != nil {
		return fmt.Errorf("the scales of its cache: %w", err)
	}
	e.Scales = &scales
	return nil
}

// scaled reports whether the caches get inputs and outputs with their scales.
func (f *caches) scaled() bool { return f.typ == "int8" && f.scales == nil }

// scaleName is the input or output with the scales of a cache of int8.
func scaleName(cache string) string { return cache + lower.ScaleSuffix }

// taken reports whether the model has an input or output of a name.
func taken(m *onnx.Model, name string) bool {
	return ir.Named(m.Graph.Inputs, name) != nil || ir.Named(m.Graph.Outputs, name) != nil
}

// write changes the shapes and types of the caches, after the sites were replaced by
// the given nodes, and refuses a graph in which another node reads them.
func (f *caches) write(m *onnx.Model, sites []*plan.Site) error {
	ours := map[*onnx.Node]bool{}
	for _, s := range sites {
		for _, n := range s.Change.Nodes {
			ours[n] = true
		}
	}
	g, err := graph.New(m)
	if err != nil {
		return err
	}
	for _, n := range g.Source.Nodes {
		if ours[n] {
			continue
		}
		for v := range ir.Uses(n) {
			if f.values[v] && !ir.Standard(n, "Shape") && f.typ != "" {
				return fmt.Errorf("node %s (%s) also reads %q and cannot read it in another type; drop --kv", ir.Label(n), short.Name(n.OpType), short.Name(v))
			}
			if f.capacity == 0 {
				continue
			}
			if f.values[v] && readsAxis(g.Source, n, 4, 2) {
				return fmt.Errorf("node %s (%s) also reads %q and would misread a buffer of fixed capacity; drop --kv", ir.Label(n), short.Name(n.OpType), short.Name(v))
			}
			if f.masks[v] && readsAxis(g.Source, n, 2, 1) {
				return fmt.Errorf("node %s (%s) also reads the mask %q, whose width would not show the past tokens if the cache had a fixed capacity; drop --kv", ir.Label(n), short.Name(n.OpType), short.Name(v))
			}
		}
	}
	chosen := func(name string) bool { return f.values[name] }
	if f.capacity > 0 {
		if f.ring && len(f.rows) == 0 {
			return errNoRing
		}
		ir.ResizeCaches(m.Graph, func(name string) (onnx.Dim, bool) {
			return onnx.Dim{Value: cmp.Or(f.rows[name], f.capacity)}, f.values[name]
		})
		m.Graph.AddInput(onnx.NewValueInfo(f.input, onnx.Int32, batchOf(m.Graph)))
	}
	if f.typ != "" {
		ir.RetypeCaches(m.Graph, chosen, definition.CacheTypes[f.typ])
	}
	if f.scaled() {
		m.Graph.Inputs = append(m.Graph.Inputs, f.scaleValues(m.Graph.Inputs)...)
		m.Graph.Outputs = append(m.Graph.Outputs, f.scaleValues(m.Graph.Outputs)...)
	}
	return nil
}

// scaleValues are the inputs or outputs with the scales of those caches that are in a list.
func (f *caches) scaleValues(list []*onnx.ValueInfo) (scales []*onnx.ValueInfo) {
	for _, v := range list {
		if f.values[v.Name] {
			scales = append(scales, onnx.NewValueInfo(scaleName(v.Name), onnx.Float, v.Shape[0], v.Shape[1], v.Shape[2], onnx.Dim{Value: 1}))
		}
	}
	return scales
}

// readsAxis reports whether a reader of a value of some rank may see more of it
// than the sizes of its other axes.
func readsAxis(g *graph.Graph, n *onnx.Node, rank, axis int64) bool {
	if !ir.Standard(n, "Shape") {
		return true
	}
	bound := func(i int64) int64 {
		if i < 0 {
			i += rank
		}
		return min(max(i, 0), rank)
	}
	start, end := bound(n.Int("start", 0)), bound(n.Int("end", rank))
	if axis < start || axis >= end {
		return false
	}
	dims := n.Outputs[0]
	if g.Outputs[dims] {
		return true
	}
	for _, reader := range g.Consumers[dims] {
		if !ir.Standard(reader, "Gather") || reader.Inputs[0] != dims {
			return true
		}
		index := g.Integers(reader.Inputs[1])
		if index == nil {
			return true
		}
		for _, i := range index {
			if i < 0 {
				i += end - start
			}
			if start+i == axis {
				return true
			}
		}
	}
	return false
}
