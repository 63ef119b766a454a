package eval

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A model may be exported for one batch, one length or one past. Such a size is
// a number like any other in its graph, so that nothing shows by changing which
// dimension is what. The declared shapes of its inputs tell the number; where it
// stands in a value follows from what the value is to the site: scores are
// [batch, heads, length, past + length], operands have the rows that their
// product needs. What cannot be told apart at one size (windows longer than the
// length, positions behind it) is the same for all that the model can be given.

// findStatic finds the sizes that the graph's inputs always have, and reads their
// dimensions by them.
func (t *ShapeTable) findStatic(g *graph.Graph) {
	free := map[dim.Axis]bool{}
	var batches, lengths, pasts []int64 // what may be these
	for _, v := range g.Model.Graph.Inputs {
		dims, ok := t.Inputs[v.Name]
		if !ok {
			continue
		}
		for _, e := range dims {
			free[dim.BatchAxis] = free[dim.BatchAxis] || e.B != 0
			free[dim.RowAxis] = free[dim.RowAxis] || e.L != 0
		}
		state := ir.IsFloat(v.Type)
		if len(dims) > 1 && dims[0].Constant() && (!state || len(dims) == 4) {
			batches = append(batches, dims[0].One)
		}
		if !state && len(dims) > 0 && len(dims) < 3 && dims[len(dims)-1].Constant() {
			lengths = append(lengths, dims[len(dims)-1].One)
		}
		if state && len(dims) == 4 && dims[2].Constant() {
			pasts = append(pasts, dims[2].One)
		}
	}
	t.Static = dim.Point{}
	if len(batches) > 0 && !free[dim.BatchAxis] {
		t.Static.B = slices.Max(batches)
	}
	if len(lengths) > 0 && !free[dim.RowAxis] {
		t.Static.L = slices.Min(lengths)
	}
	if len(pasts) > 0 && !t.Past && t.Static.L > 0 {
		t.Static.P, t.Past = slices.Max(pasts), true
	}
	if t.Static == (dim.Point{}) {
		return
	}
	for _, v := range g.Model.Graph.Inputs {
		dims, ok := t.Inputs[v.Name]
		if !ok {
			continue
		}
		switch state := ir.IsFloat(v.Type); {
		case state && len(dims) == 4:
			t.Inputs[v.Name] = t.Reading(dims, 2, dim.PastExtent)
		case !state && len(dims) > 0 && len(dims) < 3:
			last := len(dims) - 1
			read := t.Reading(dims, last, dim.LengthExtent)
			if read[last] != dim.LengthExtent {
				read = t.Reading(dims, last, dim.TotalExtent)
			}
			t.Inputs[v.Name] = read
		default:
			t.Inputs[v.Name] = t.Reading(dims, -1, dim.Extent{})
		}
	}
}

// Reading returns dims with the batch in place of its number, and rows in that
// of dimension at, where they have the numbers that these must have.
func (t *ShapeTable) Reading(dims []dim.Extent, at int, rows dim.Extent) []dim.Extent {
	out := slices.Clone(dims)
	first := 0 // where the batch stands: in front, or behind the rows
	if len(out) > 1 && (at == 0 || !out[0].Constant()) {
		first = 1
	}
	if b := t.Static.B; b > 0 && len(out) > 1 && out[first].Constant() && at != first && out[first].One%b == 0 {
		if out[first].One == b || len(out) == 3 {
			out[first] = dim.Extent{B: out[first].One / b}
		}
	}
	for _, more := range []int64{0, 1} { // a sink stands behind the keys
		want := rows
		want.One += more
		if at >= 0 && at < len(out) && out[at] == t.Settled(want) {
			out[at] = want
		}
	}
	return out
}

// Settled returns an extent with numbers in place of the sizes that are fixed.
func (t *ShapeTable) Settled(e dim.Extent) dim.Extent {
	f := t.Static
	if f.B > 0 {
		e.One, e.L, e.P, e.B, e.BL, e.BP = e.One+e.B*f.B, e.L+e.BL*f.B, e.P+e.BP*f.B, 0, 0, 0
	}
	if f.L > 0 {
		e.One, e.B, e.L, e.BL = e.One+e.L*f.L, e.B+e.BL*f.L, 0, 0
	}
	if f.P > 0 {
		e.One, e.B, e.P, e.BP = e.One+e.P*f.P, e.B+e.BP*f.P, 0, 0
	}
	return e
}

// settledAll does so with every dimension.
func (t *ShapeTable) settledAll(dims []dim.Extent) []dim.Extent {
	out := make([]dim.Extent, len(dims))
	for i, e := range dims {
		out[i] = t.Settled(e)
	}
	return out
}

// At returns the sizes that the model has when it is asked for others.
func (t *ShapeTable) At(pt dim.Point) dim.Point { return t.Static.Over(pt) }

// Within returns sizes that the model can be asked for, close to the given ones:
// fewer tokens are a part of as many as it takes, any batch is made of those that
// it takes. Without a cache length and past are tokens of one call.
func (t *ShapeTable) Within(pt dim.Point) dim.Point {
	f := t.Static
	switch {
	case f.L == 0:
	case t.Past:
		pt.L = min(pt.L, f.L)
	default:
		pt.L = min(pt.L, f.L)
		pt.P = min(pt.P, f.L-pt.L)
	}
	if f.P > 0 {
		pt.P = min(pt.P, f.P)
	}
	return pt
}

// RowsAt returns which dimension of a query, key or value holds its tokens:
// [batch, heads, length, channels] before [batch, length, …].
func (t *ShapeTable) RowsAt(dims []dim.Extent) int {
	want := t.Settled(dim.LengthExtent)
	if len(dims) == 4 && dims[2] == want {
		return 2
	}
	for i := 1; i < len(dims); i++ {
		if dims[i] == want {
			return i
		}
	}
	if len(dims) > 0 && dims[0] == want {
		return 0
	}
	return len(dims)
}

// SizesSentence says for which sizes alone the model was exported, "" when for any.
func (t *ShapeTable) SizesSentence() string {
	f := t.Static
	var list []string
	for _, s := range []struct {
		fixed int64
		name  string
	}{{f.B, "batch"}, {f.L, "length"}, {f.P, "past"}} {
		if s.fixed > 0 {
			list = append(list, fmt.Sprintf("%s %d", s.name, s.fixed))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("the model was exported for %s alone; it was measured and proven for that", dim.Joined(list))
}

// dimsOf returns how the dimensions of something that a piece is fed or gives
// follow from the sizes asked for; nil where they do not.
func (l *Loaded) dimsOf(value string) []dim.Extent {
	if dims, ok := l.Piece.dims[value]; ok {
		return dims
	}
	if dims, ok := l.Table.Dims[value]; ok {
		return dims
	}
	if slices.ContainsFunc(l.Piece.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == value }) {
		return l.Table.Inputs[value]
	}
	return nil
}
