package rotation

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A model without a cache and without a position input rotates token i by what the graph
// computes for i: cosines and sines of Range(L). Rotating 131,072 tokens takes gigabytes,
// computing their cosines does not. So everything that depends on the index of a token is
// computed once for all indices. The branch is then run with few tokens, and the rows of
// any indices are fed to it.

// Tables holds, for every token index, what a branch reads apart from hidden states.
type Tables struct {
	list   []table
	limit  int64       // the largest token index that the graph can compute
	byCall *callTables // where calls of other lengths have other rows; nil for most
}

// table is one value with a row for each token, or one for all.
type table struct {
	name  string
	dims  []dim.Extent
	whole engine.Tensor // with batch 1
}

// input returns the table as an input of a piece.
func (t table) input() *onnx.ValueInfo { return &onnx.ValueInfo{Name: t.name, Type: t.whole.Type} }

// axis returns the dimension of the rows, −1 if there is one row for all tokens.
func (t table) axis() int { return slices.Index(t.dims, dim.LengthExtent) }

// rows returns the value for a batch whose tokens have these positions.
func (t table) rows(positions []int64, batch int64) engine.Tensor {
	out := engine.Tensor{Type: t.whole.Type, Dims: dim.Evaluate(t.dims, dim.Point{B: batch, L: int64(len(positions))})}
	out.Data = make([]byte, 0, out.Len()*int64(out.Type.Size()))
	axis, wide := t.axis(), slices.Index(t.dims, dim.BatchExtent)
	var copyFrom func(from []byte, d int)
	copyFrom = func(from []byte, d int) {
		if d > max(axis, wide) { // the rest of a row, in one piece
			out.Data = append(out.Data, from...)
			return
		}
		step := int64(len(from)) / t.whole.Dims[d]
		switch d {
		case axis:
			for _, p := range positions {
				copyFrom(from[p*step:(p+1)*step], d+1)
			}
		case wide:
			for range batch {
				copyFrom(from, d+1)
			}
		default:
			for i := range t.whole.Dims[d] {
				copyFrom(from[i*step:(i+1)*step], d+1)
			}
		}
	}
	copyFrom(t.whole.Data, 0)
	return out
}

// ByPlace computes what the nodes between boundaries and out read, for every token index,
// and loads the piece that is fed rows of it. The error is a refusal, which names the node at,
// and the nodes as what says.
func ByPlace(ctx context.Context, e *eval.Evaluator, at *onnx.Node, what, out string, boundaries []string) (*Tables, *eval.Loaded, error) {
	if err := e.PlacedAlike(ctx, at, what, out, boundaries); err != nil {
		return nil, nil, err
	}
	factors, arguments := eval.SizeInputs(e.Graph, out, boundaries)
	if err := e.SteadySizes(ctx, at, what, nil, arguments); err != nil {
		return nil, nil, err
	}
	t, err := tablesOf(ctx, e, factors)
	if err != nil {
		return nil, nil, graph.Refuse(at, "%s cannot be evaluated token by token: %v", what, err)
	}
	p, err := eval.Extract(e.Graph, []string{out}, slices.Concat(boundaries, factors))
	if err != nil {
		t.Close()
		return nil, nil, graph.Refuse(at, "%s cannot be evaluated by itself: %v", what, err)
	}
	typed := make([]*onnx.ValueInfo, len(t.list))
	for i, x := range t.list {
		typed[i] = x.input()
	}
	fed, refusal := e.OpenPiece(ctx, at, what, p.Fed(boundaries, typed...))
	if refusal != nil {
		t.Close()
		return nil, nil, refusal
	}
	return t, fed, nil
}

// tablesOf computes values for every token index up to dim.Longest, or up to the end of
// the graph's own tables. It checks that a row does not depend on the batch.
func tablesOf(ctx context.Context, e *eval.Evaluator, values []string) (*Tables, error) {
	if len(values) == 0 {
		return &Tables{limit: dim.Longest}, nil
	}
	p, err := eval.Extract(e.Graph, slices.Clone(values), nil) // whose outputs listNumbers renames
	if err != nil {
		return nil, err
	}
	dims, err := e.Dims(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		rows := 0
		for _, d := range dims[v] {
			switch {
			case d == dim.LengthExtent:
				rows++
			case d != dim.BatchExtent && !d.Constant():
				rows = 2
			}
		}
		if _, ok := dims[v]; !ok || rows > 1 {
			return nil, fmt.Errorf("%q has the shape %v; expected one row per token", short.Name(v), dims[v])
		}
	}
	c := &callTables{values: values, dims: dims, given: p.Outputs}
	c.listNumbers(p)
	if c.loaded, err = e.Load(ctx, p); err != nil {
		return nil, err
	}
	t, err := c.everywhere(ctx)
	if err != nil || t.byCall == nil {
		c.loaded.Session.Close()
	}
	return t, err
}

// sameNumbers reports whether two values of one shape are equal but for rounding: the last
// elements of a long list may be rounded differently, because they are computed one by one.
func sameNumbers(a, b engine.Tensor) bool {
	if bytes.Equal(a.Data, b.Data) || !ir.IsFloat(a.Type) {
		return bytes.Equal(a.Data, b.Data)
	}
	slack := 2 * max(ir.Precision(a.Type).Epsilon(), ir.Float32eps)
	y := b.Values()
	for i, x := range a.Values() {
		if x != y[i] && !(math.Abs(x-y[i]) <= slack*math.Max(math.Abs(x), 1)) {
			return false
		}
	}
	return true
}
