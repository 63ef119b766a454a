package eval

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// mostIndices is the largest number of indices of one ScatterND that are checked. They
// are larger than what they place, so that they are checked for fewer tokens than other
// sizes.
const mostIndices = 1 << 21

// PlacedAlike checks that every ScatterND between boundaries and output writes one
// block: element (i, j, …) of its updates goes to (i + a, j + b, …), with the same
// a, b, … at all sizes. Anything else is a refusal, which names the node at, and the
// nodes as what says.
func (e *Evaluator) PlacedAlike(ctx context.Context, at *onnx.Node, what, output string, boundaries []string) error {
	var asked []string
	e.Graph.Upstream([]string{output}, func(v string, n *onnx.Node) []string {
		if slices.Contains(boundaries, v) || !e.Graph.IsData(v) || n == nil {
			return nil
		}
		if ir.Scatters(n) {
			asked = append(asked, n.Inputs[1])
		}
		return ir.Reads(n)
	})
	for _, v := range ir.Unique(asked) {
		if t := e.Graph.Constants[v]; t != nil { // the same at all sizes
			if _, ok := BoxAt(t.Dims, e.Graph.Integers(v)); !ok {
				return graph.Refuse(at, "%s writes to places (%q) that are not one block", what, short.Name(v))
			}
			continue
		}
		p, err := Extract(e.Graph, []string{v}, nil)
		if err != nil {
			return graph.Refuse(at, "%s writes to places (%q) that cannot be evaluated: %v", what, short.Name(v), err)
		}
		loaded, refusal := e.OpenPiece(ctx, at, "the place where "+what+" writes", p)
		if refusal != nil {
			return refusal
		}
		err = e.box(ctx, loaded, at, what, v)
		loaded.Session.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// box checks the indices of one ScatterND at several sizes.
func (e *Evaluator) box(ctx context.Context, loaded *Loaded, at *onnx.Node, what, indices string) error {
	var offset []int64
	points := dim.SamplePoints(e.Table.Past, e.Table.Source)
	for i := 0; i < len(points); i++ {
		results, err := loaded.Run(ctx, points[i], nil)
		if err != nil {
			return graph.Refuse(at, "%s writes to places (%q) that cannot be evaluated with %v: %v", what, short.Name(indices), points[i], err)
		}
		t := results[indices]
		first, ok := BoxAt(t.Dims, t.Values())
		if offset == nil {
			offset = first
		}
		if !ok || !slices.Equal(first, offset) {
			return graph.Refuse(at, "%s writes to places (%q) that are not one block at %v, with %v", what, short.Name(indices), offset, points[i])
		}
		if i == 0 { // one more point, with as many tokens as mostIndices allows
			pt := points[0]
			each := int64(len(t.Values()))/(pt.B*(pt.L+pt.P)) + 1
			points = slices.Insert(points, 1, dim.Point{B: 1, L: 1 + min(mostIndices/each, 4096)})
		}
	}
	return nil
}

// BoxAt returns the index to which the first element of the updates goes, and whether
// all others keep their distance from it. indices are those of a ScatterND, of the shape
// dims.
func BoxAt[N int64 | float64](dims []int64, indices []N) (offset []int64, ok bool) {
	if len(dims) == 0 {
		return nil, false
	}
	depth := int(dims[len(dims)-1])
	if depth != len(dims)-1 || len(indices) < depth {
		return nil, false
	}
	at := make([]int64, depth)
	for e := 0; e+depth <= len(indices); e += depth {
		for d := range depth {
			i := int64(indices[e+d])
			if e == 0 {
				offset = append(offset, i)
			}
			if i != offset[d]+at[d] {
				return offset, false
			}
		}
		for d := depth - 1; d >= 0; d-- { // the next element
			if at[d]++; at[d] < dims[d] {
				break
			}
			at[d] = 0
		}
	}
	return offset, true
}
