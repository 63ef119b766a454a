package eval

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A model may be exported with static sizes: one batch, one length or one past. Such a
// size is a number like any other in its graph, and running it with other sizes, which
// would show which dimension is which, is not possible. The declared shapes of the
// inputs tell the number. Where it stands in the shape of a value follows from what the
// value is to the site: scores are [batch, heads, length, past + length], operands have
// the rows that their MatMul needs. What one size does not show (windows longer than the
// length, positions beyond it) makes no difference to any input that the model takes.

// findStatic finds the static sizes of the graph's inputs, and replaces their numbers in
// the inputs' shapes by batch, length and past.
func (t *ShapeTable) findStatic(g *graph.Graph) {
	free := map[dim.Axis]bool{}         // not static
	var batches, lengths, pasts []int64 // numbers that may be the static size
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

// Reading returns dims with the batch in place of the static batch, and rows at the
// dimension at, wherever the numbers are those that batch and rows must have. at is −1 in
// a value without rows.
func (t *ShapeTable) Reading(dims []dim.Extent, at int, rows dim.Extent) []dim.Extent {
	out := slices.Clone(dims)
	first := 0 // the dimension of the batch: the first, or the one behind the rows
	if len(out) > 1 && (at == 0 || !out[0].Constant()) {
		first = 1
	}
	if b := t.Static.B; b > 0 && len(out) > 1 && out[first].Constant() && at != first && out[first].One%b == 0 {
		if out[first].One == b || len(out) == 3 {
			out[first] = dim.Extent{B: out[first].One / b}
		}
	}
	for _, more := range []int64{0, 1} { // with a sink the scores have one column more than keys
		want := rows
		want.One += more
		if at >= 0 && at < len(out) && out[at] == t.WithStatic(want) {
			out[at] = want
		}
	}
	return out
}

// WithStatic returns an extent with the static sizes replaced by their numbers.
func (t *ShapeTable) WithStatic(e dim.Extent) dim.Extent {
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

// settledAll does so for every dimension.
func (t *ShapeTable) settledAll(dims []dim.Extent) []dim.Extent {
	out := make([]dim.Extent, len(dims))
	for i, e := range dims {
		out[i] = t.WithStatic(e)
	}
	return out
}

// At returns the sizes that a run has when pt is asked for: the static ones, and those
// of pt where the model's are open.
func (t *ShapeTable) At(pt dim.Point) dim.Point { return t.fullBuffers(t.Static.Over(pt)) }

// fullBuffers returns pt with as many tokens as buffers of a static size have rows.
func (t *ShapeTable) fullBuffers(pt dim.Point) dim.Point {
	if t.Slotted() && t.Slots.Rows > 0 {
		pt.L = min(pt.L, t.Slots.Rows)
		pt.P = t.Slots.Rows - pt.L
	}
	return pt
}

// Within returns the sizes closest to pt that Run can evaluate: at most the static
// length and past, since fewer tokens are padded, and any batch, since several runs
// make a larger one. Without a cache length and past together are the tokens of one call.
// Buffers of a static number of rows are full.
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
	return t.fullBuffers(pt)
}

// RowsAt returns which dimension of a query, key or value holds its tokens. Where the
// numbers allow two, [batch, heads, length, channels] comes before [batch, length, …].
// Without such a dimension it is len(dims).
func (t *ShapeTable) RowsAt(dims []dim.Extent) int {
	want := t.WithStatic(dim.LengthExtent)
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

// SizesSentence tells the user for which static sizes the model was exported, "" when
// all sizes are open.
func (t *ShapeTable) SizesSentence() string {
	f := t.Static
	var list []string
	for _, s := range []struct {
		static int64
		name   string
	}{{f.B, "batch"}, {f.L, "length"}, {f.P, "past"}} {
		if s.static > 0 {
			list = append(list, fmt.Sprintf("%s %d", s.name, s.static))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("the model was exported only for %s, and is measured and verified only for that", dim.Joined(list))
}
