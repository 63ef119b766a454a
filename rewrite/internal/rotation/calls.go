package rotation

import (
	"context"
	"errors"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Calls evaluates the rotation of a branch by the largest position of a call.
type Calls struct {
	rotator Rotator // which knows the order of the channels
	turns   *Matrix // which channels rotate together
	limit   int64   // the largest position
}

// Calls returns them. It is an error where positions are neither an input of their own nor the
// indices of all tokens, or angles have 16 bits.
func (r *Rotator) Calls(ctx context.Context) (*Calls, error) {
	if r.Position == nil && r.Tables.Changes() == nil || r.Components > 0 || r.Angles != rope.Float32 || r.Loaded.Table.Static.L > 0 {
		return nil, errors.New("its positions are not an input of the graph, and not indices with float32 angles and a dynamic length")
	}
	limit, err := r.limit(ctx)
	if err != nil {
		return nil, err
	}
	short := r.upTo(1, 0)
	turns, err := short.Measure(ctx)
	if err != nil {
		return nil, err
	}
	if len(turns.Encoding.Frequencies) == 0 {
		return nil, errors.New("it rotates no channels")
	}
	return &Calls{rotator: *short, turns: turns, limit: limit}, nil
}

// oneStep is the rotation by one position in calls whose largest position is last.
func (c *Calls) oneStep(ctx context.Context, last int64) (oneStep, error) {
	return c.rotator.oneStep(ctx, c.turns, 0, 1, last)
}

// Frequencies are those of calls whose largest position is last, at least 1. They are read at the
// powers of two up to it, at which the product of position and frequency is exact in float32.
func (c *Calls) Frequencies(ctx context.Context, last int64) ([]float64, error) {
	var powers []int64
	for p := int64(1); p <= last; p *= 2 {
		powers = append(powers, p)
	}
	r := c.rotator
	r.reach = last
	probe := make([]float32, r.In.Channels)
	e := c.turns.Encoding
	for x := range e.Frequencies {
		a, _ := PairAt(e, x)
		probe[a] = 1
	}
	y, err := r.apply(ctx, [][]float32{probe}, powers)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(e.Frequencies))
	for x := range out {
		a, b := PairAt(e, x)
		out[x] = unwound(powers, func(k int) float64 { return math.Atan2(y[0][0][k][b], y[0][0][k][a]) })
	}
	return out, nil
}
