package rotation

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Matrix is a measured rotation R(p): an encoding, times a factor on every channel.
type Matrix struct {
	Encoding rope.Encoding
	Factor   float64        // of every channel; the rotated ones have the encoding's gain as well. 1 when all are rotated
	Limit    int64          // largest position that could be evaluated
	Angles   rope.Precision // in which the graph computes angles
	Unknown  float64        // relative error of the frequencies, where 16 bits leave one; 0 for float32
	Finer    []float64      // the frequencies, where they have digits that float32 has not; nil for most
	Factors  []float64      // of each channel behind the rotation, which are divided out of all else; nil where there are none
	Order    []int64        // for each rotated channel, the un-rotated one that it is made of; nil when channels keep their places
	computed rope.Precision // in which ONNX Runtime computes them: it may leave out a rounding to 16 bits
	Calls    int64          // how many calls of few tokens it was compared with, which are all there are

	AnyLength bool   // it is the same in every call, by the formula that the graph computes
	Unread    string // why that is not known
}

// Within returns the rotation of wider vectors, in which m rotates the channels from index
// at on. order is the Order of the result.
func (m *Matrix) Within(order []int64, at int) *Matrix {
	wide := *m
	wide.Order, wide.Encoding.Offset = order, m.Encoding.Offset+at
	return &wide
}

// Measure finds frequencies, layout, width, offset and gain of the rotation by evaluating
// it, and checks them at many positions.
func (r *Rotator) Measure(ctx context.Context) (*Matrix, error) {
	limit, err := r.limit(ctx)
	if err != nil {
		return nil, err
	}
	powers := []int64{0}
	for p := int64(1); p <= limit && (r.Angles != rope.Float16 || p <= ir.LargestHalf); p *= 2 {
		powers = append(powers, p)
	}
	if last := powers[len(powers)-1]; r.Precision != rope.Float32 && r.Angles == rope.Float32 && limit > last && limit < 2*last {
		powers = append(powers, limit) // a short table in 16 bits: the larger the position, the better the frequencies are known
	}
	least := 1e-4 * float64(powers[len(powers)-1]) / ir.TopPosition
	m, err := r.alike(ctx, powers, least)
	if err != nil {
		return nil, err
	}
	broken := notANumber(m, powers) // xPos, which is named first, leaves the range of numbers too
	if r.order = rearranged(m); r.order != nil {
		unordered := slices.Clone(m)
		for to, from := range r.order {
			m[to] = unordered[from]
		}
	}
	if text := decayed(m, powers); text != "" {
		return nil, decay{text}
	}
	if broken != nil {
		return nil, broken
	}
	if r.factors = factorsBehind(m, r.Precision, least); r.factors != nil {
		divide(m, r.factors)
	}
	pairs, err := findPairs(m, least)
	if err != nil {
		return nil, err
	}
	fit, err := fitEncoding(m, pairs, powers)
	if err != nil {
		return nil, err
	}
	if r.Angles != rope.Float32 {
		limit = min(limit, int64(2/r.Angles.Epsilon())-1) // larger positions are not different numbers
	}
	fit.Limit, fit.Angles, fit.Order, fit.Factors = limit, r.Angles, r.order, r.factors
	agreed, err := r.confirm(ctx, fit, powers[len(powers)-1])
	if err != nil && !bisect.Ended(err) && r.Angles != rope.Float32 {
		// ONNX Runtime may compute angles in float32 and leave out the rounding to 16 bits.
		r.Angles = rope.Float32
		agreed, err = r.confirm(ctx, fit, powers[len(powers)-1])
	}
	if err != nil && !bisect.Ended(err) {
		if change := r.switches(ctx, fit); change != nil {
			return nil, change
		}
		if change := r.follows(ctx, fit); change != nil {
			return nil, change
		}
	}
	if err == nil && r.Components > 0 && len(agreed.Encoding.Frequencies) > 0 {
		if agreed.Encoding.Axes, err = r.axes(ctx, agreed); err == nil {
			err = r.apartAsEqual(ctx, agreed)
		}
	}
	if err == nil {
		agreed.computed = r.Angles
		err = r.measureAngles(ctx, agreed)
	}
	return agreed, err
}

// confirm checks a fit. In 16 bits it also finds what the frequencies are; top is the
// largest position they were measured at.
func (r *Rotator) confirm(ctx context.Context, fit *Matrix, top int64) (*Matrix, error) {
	fit.Unknown = 0
	if r.Precision != rope.Float32 && len(fit.Encoding.Frequencies) > 0 {
		return r.explained(ctx, fit, top)
	}
	return fit, r.verify(ctx, fit, fit.Limit)
}

// limit returns the largest position that the graph can rotate to: a table of cosines
// has an end.
func (r *Rotator) limit(ctx context.Context) (int64, error) {
	probe := func(p int64) error {
		_, err := r.apply(ctx, [][]float32{make([]float32, r.In.Channels)}, []int64{p})
		return err
	}
	if err := probe(0); err != nil {
		return 0, fmt.Errorf("ONNX Runtime does not evaluate the rotation: %w", err)
	}
	switch {
	case r.most > 0:
		return r.most, nil
	case r.Tables != nil:
		return r.Tables.limit, nil
	case r.Places > 0:
		return r.Places - 1, nil
	}
	return bisect.Farthest(ir.TopPosition, func(p int64) (int64, error) { return p, probe(p) })
}

// top returns the largest position that is evaluated.
func (r *Rotator) top() int64 {
	if r.Tables != nil {
		return dim.Longest
	}
	return ir.TopPosition
}
