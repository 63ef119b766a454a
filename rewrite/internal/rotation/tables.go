package rotation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// In a model without a cache and without position input, the token at place i
// is rotated by what the graph computes for i: cosines and sines of Range(L).
// Rotating 131,072 tokens takes gigabytes, making their cosines does not. So
// what depends on the place is computed once for all places, and the branch is
// then run on few tokens with the rows of places chosen at will.

// tables holds what enters a branch beside the hidden states, for every place.
type tables struct {
	list  []table
	limit int64 // the largest place that the graph can compute
}

// table is one value with a row per token.
type table struct {
	name  string
	dims  []dim.Extent
	whole engine.Tensor // with batch 1
}

// input describes the table as something that is fed.
func (t table) input() *onnx.ValueInfo { return &onnx.ValueInfo{Name: t.name, Type: t.whole.Type} }

// axis returns the dimension of rows, −1 if the value has none.
func (t table) axis() int { return slices.Index(t.dims, dim.LengthExtent) }

// rows returns the value that a batch has whose tokens are at these places.
func (t table) rows(positions []int64, batch int64) engine.Tensor {
	out := engine.Tensor{Type: t.whole.Type, Dims: dim.Evaluate(t.dims, dim.Point{B: batch, L: int64(len(positions))})}
	axis, wide := t.axis(), slices.Index(t.dims, dim.BatchExtent)
	var copyFrom func(from []byte, d int)
	copyFrom = func(from []byte, d int) {
		if d == len(t.dims) {
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

// ByPlace computes what enters between cuts and out for every place, and
// loads the piece that is fed rows of it.
func ByPlace(ctx context.Context, l *eval.Evaluator, at *onnx.Node, what, out string, cuts []string) (*tables, *eval.Loaded, error) {
	if err := l.PlacedAlike(ctx, at, what, out, cuts); err != nil {
		return nil, nil, err
	}
	factors, arguments := eval.SizeInputs(l.Graph, out, cuts)
	if err := l.SteadySizes(ctx, at, what, nil, arguments); err != nil {
		return nil, nil, err
	}
	t, err := tablesOf(ctx, l, factors)
	if err != nil {
		return nil, nil, graph.Refuse(at, "%s cannot be evaluated place by place: %v", what, err)
	}
	p, err := eval.Extract(l.Graph, []string{out}, slices.Concat(cuts, factors))
	if err != nil {
		return nil, nil, graph.Refuse(at, "%s cannot be evaluated by itself: %v", what, err)
	}
	p.Boundaries = cuts
	for _, x := range t.list {
		p.Typed = append(p.Typed, x.input())
	}
	fed, refusal := l.OpenPiece(ctx, at, what, p)
	if refusal != nil {
		return nil, nil, refusal
	}
	return t, fed, nil
}

// tablesOf computes values for every place up to longest, or up to where the
// graph's own tables end. That a row does not change with the number of tokens
// or the batch is checked.
func tablesOf(ctx context.Context, l *eval.Evaluator, values []string) (*tables, error) {
	if len(values) == 0 {
		return &tables{limit: dim.Longest}, nil
	}
	p, err := eval.Extract(l.Graph, values, nil)
	if err != nil {
		return nil, err
	}
	dims, err := l.Dims(ctx, p)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		rows := 0
		for _, e := range dims[v] {
			switch {
			case e == dim.LengthExtent:
				rows++
			case e != dim.BatchExtent && !e.Constant():
				rows = 2
			}
		}
		if _, ok := dims[v]; !ok || rows > 1 {
			return nil, fmt.Errorf("%q has the shape %v; one row per token was expected", v, dims[v])
		}
	}
	loaded, err := l.Load(ctx, p)
	if err != nil {
		return nil, err
	}
	defer loaded.Session.Close()
	compute := func(pt dim.Point) (*tables, error) {
		results, err := loaded.Run(ctx, pt, nil)
		if err != nil {
			return nil, err
		}
		t := &tables{limit: pt.L - 1}
		for _, v := range values {
			if want := dim.Evaluate(dims[v], pt); !slices.Equal(results[v].Dims, want) {
				return nil, fmt.Errorf("%q has the shape %v with %v, %v was expected", v, results[v].Dims, pt, want)
			}
			t.list = append(t.list, table{v, dims[v], results[v]})
		}
		return t, nil
	}
	far, err := Farthest(dim.Longest+1, func(length int64) (*tables, error) { return compute(dim.Point{B: 1, L: length}) })
	if err != nil {
		return nil, err
	}
	for _, pt := range []dim.Point{{B: 3, L: 1}, {B: 2, L: 5}, {B: 1, L: 4096}, {B: 1, L: 20_011}, {B: 1, L: 65_537}} {
		if pt.L > far.limit {
			continue
		}
		near, err := compute(pt)
		if err != nil {
			return nil, err
		}
		places := make([]int64, pt.L)
		for i := range places {
			places[i] = int64(i)
		}
		for i, t := range near.list {
			if !sameNumbers(t.whole, far.list[i].rows(places, pt.B)) {
				err := fmt.Errorf("%q is not the same with %v and with %d tokens", t.name, pt, far.limit+1)
				if n := t.until(pt.L, far.limit+1, compute); n > 0 {
					err = fmt.Errorf("%w, but up to %d; %s", err, n, OnceForAll)
				}
				return nil, err
			}
		}
	}
	return far, nil
}

// sameNumbers compares values that were computed together with others or without:
// the last elements of a long list may be rounded otherwise than those before them.
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

// Farthest returns what f makes of the largest length up to top for which it
// does not fail: a table that the graph holds ends somewhere.
func Farthest[T any](top int64, f func(length int64) (T, error)) (T, error) {
	best, err := f(top)
	if err == nil || Ended(err) {
		return best, err
	}
	most, broken := Largest(0, top, func(length int64) (bool, error) {
		v, err := f(length)
		switch {
		case Ended(err):
			return false, err
		case err != nil:
			return false, nil
		}
		best = v
		return true, nil
	})
	switch {
	case broken != nil:
		return best, broken
	case most == 0:
		return best, err
	}
	return best, nil
}

// Largest returns the last number for which something holds that holds for low
// and not for high, where it changes once.
func Largest(low, high int64, holds func(n int64) (bool, error)) (int64, error) {
	for high-low > 1 {
		middle := (low + high) / 2
		is, err := holds(middle)
		switch {
		case err != nil:
			return low, err
		case is:
			low = middle
		default:
			high = middle
		}
	}
	return low, nil
}

// Ended says that an evaluation was broken off or not begun, which tells nothing
// of a table.
func Ended(err error) bool {
	return errors.Is(err, bound.ErrTooLarge) || errors.Is(err, engine.ErrTimeout) || errors.Is(err, engine.ErrDied) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
