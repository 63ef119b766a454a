package feature

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
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

func (a Asked) checkFixedCache(m *onnx.Model, frees func(string) bool, _ int64) error {
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

// fixedCacheBuffers turns growing caches into buffers of one capacity: the past
// inputs and present outputs of every site become [batch, kv heads, capacity, head
// size], and an input says how many tokens each row holds. Whatever else would
// read the length of the past from a buffer's shape must be gone.
type fixedCacheBuffers struct {
	input    string // int32 [batch]
	capacity int64
	caches   map[string]bool // the past inputs and present outputs
	masks    map[string]bool // the padding masks, whose width says the length no more
}

func fixedCache(_ context.Context, asked Asked, of Subject) (*plan.Feature, error) {
	if asked.FixedCapacity == 0 {
		return nil, nil
	}
	for _, s := range of.Analysis.Sites {
		if s.Unchanged != "" {
			return nil, &UnchangedError{s.Layer, s.Reason}
		}
	}
	f := &fixedCacheBuffers{input: asked.CacheLength, capacity: asked.FixedCapacity, caches: map[string]bool{}, masks: map[string]bool{}}
	return &plan.Feature{
		Edit: provenance.Edit{What: "kv", Given: fmt.Sprintf("fixed:capacity=%d,input=%s", f.capacity, f.input), Settings: []rope.Setting{
			{Name: "capacity", Value: rope.Integer(f.capacity), From: rope.Given}, {Name: "input", Value: rope.Text(f.input), From: rope.Given}}},
		Extra: func(s *plan.Site) error { return f.add(of.Model, s) },
		Write: f.write,
	}, nil
}

// add notes the cache of one site, or says why it cannot be of fixed capacity.
func (f *fixedCacheBuffers) add(m *onnx.Model, e *plan.Site) error {
	w := e.Binding
	switch {
	case e.Scope.Where != "":
		return fmt.Errorf("it is in %s, whose cache cannot have a fixed capacity", e.Scope.Where)
	case w.LengthTracked != nil:
		return errors.New("its cache already has a fixed capacity (GroupQueryAttention's: past and present may be one buffer, and seqlens_k has the lengths); drop --kv")
	case w.Slots != nil:
		return errors.New("its cache already has a fixed capacity, and an input of the model says where new tokens are written; drop --kv")
	case w.Latent != nil:
		return errors.New("its cache holds latent states, from which every call computes keys and values again, so it cannot have a fixed capacity")
	case e.Written == nil && len(e.Site.Biases) > 0:
		return errors.New("the bias on its scores is computed from hidden states of all tokens, so the model would treat unused rows of a buffer as tokens; drop --kv")
	case w.PastKey == "":
		return errors.New("it has no key-value cache that could have a fixed capacity")
	}
	for _, past := range []string{w.PastKey, w.PastValue} {
		if v := ir.Named(m.Graph.Inputs, past); v == nil || len(v.Shape) != 4 {
			return fmt.Errorf("its cache %q is not a model input of rank 4, so it cannot have a fixed capacity", past)
		}
	}
	for _, present := range []string{w.PresentKey, w.PresentValue} {
		if ir.Named(m.Graph.Outputs, present) == nil {
			return fmt.Errorf("its cache %q is not an output of the model", present)
		}
	}
	for _, v := range []string{w.PastKey, w.PastValue, w.PresentKey, w.PresentValue} {
		f.caches[v] = true
	}
	if w.Mask != nil {
		f.masks[w.Mask.Name] = true
	}
	e.Extra.CacheLength = f.input
	return nil
}

// write changes the shapes of the buffers, after the sites were replaced by
// the given nodes, and refuses a graph in which another node reads them.
func (f *fixedCacheBuffers) write(m *onnx.Model, sites []*plan.Site) error {
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
			if f.caches[v] && readsAxis(g.Source, n, 4, 2) {
				return fmt.Errorf("node %s (%s) also reads %q and would misread a buffer of fixed capacity; drop --kv", ir.Label(n), n.OpType, v)
			}
			if f.masks[v] && readsAxis(g.Source, n, 2, 1) {
				return fmt.Errorf("node %s (%s) also reads the mask %q, whose width would not show the past tokens if the cache had a fixed capacity; drop --kv", ir.Label(n), n.OpType, v)
			}
		}
	}
	ir.ResizeCaches(m.Graph, func(name string) bool { return f.caches[name] }, onnx.Dim{Value: f.capacity})
	m.Graph.AddInput(onnx.NewValueInfo(f.input, onnx.Int32, batchOf(m.Graph)))
	return nil
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
