package eval

import (
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Slots says how the caches of a model are written whose past and present are buffers of
// one size: the new tokens of a call go to consecutive rows, from the one on that an input
// tells. In the table such a buffer has past + length rows, as if it were full. A call with
// fewer tokens before it leaves rows unused behind its tokens.
type Slots struct {
	Input   *onnx.ValueInfo // the rows of the new tokens, or of the first: [length], or one element
	Rows    int64           // of every buffer; 0 where a call may have buffers of any size
	Refused error           // why this cannot be said of the model; nil for most
}

// Full returns dims with past + length at one dimension, where that is the number of a
// buffer's rows.
func (s *Slots) Full(dims []dim.Extent, at int) []dim.Extent {
	if at < 0 || at >= len(dims) || dims[at] != dim.ConstantExtent(s.Rows) {
		return dims
	}
	out := slices.Clone(dims)
	out[at] = dim.TotalExtent
	return out
}

// Slotted reports whether new tokens go to rows that an input tells.
func (t *ShapeTable) Slotted() bool { return t.Slots != nil && t.Slots.Refused == nil }

// Around returns the sizes at which a call of the sizes pt is run, some unused rows behind its
// tokens where buffers have any number of rows.
func (t *ShapeTable) Around(pt dim.Point, unused int64) dim.Point {
	switch {
	case !t.Slotted():
	case t.Slots.Rows > 0:
		pt.P = t.Slots.Rows - pt.L
	default:
		pt.P += unused
	}
	return pt
}

// Places returns the input that tells where length tokens are written of which the first
// goes to the row first.
func (t *ShapeTable) Places(length, first int64) (engine.Tensor, error) {
	dims := dim.Evaluate(t.Inputs[t.Slots.Input.Name], dim.Point{B: 1, L: length})
	n, err := bound.Elements(dims)
	if err != nil {
		return engine.Tensor{}, err
	}
	values := make([]int64, n)
	for i := range values {
		values[i] = first + int64(i)
	}
	return engine.Integers(t.Slots.Input.Type, values, dims...)
}

// Scattered returns the input that tells where the tokens of a call are written, with the
// first place as the call has it and the others anywhere.
func (t *ShapeTable) Scattered(rng *rand.Rand, call dim.Point) (engine.Tensor, error) {
	places, err := t.Places(call.L, call.P)
	if err != nil {
		return places, err
	}
	values := make([]int64, places.Len())
	for i := range values {
		values[i] = call.P
		if i > 0 {
			values[i] = rng.Int64N(call.P + call.L)
		}
	}
	return engine.Integers(places.Type, values, places.Dims...)
}
