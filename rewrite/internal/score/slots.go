package score

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// feedPlaces adds the input that tells where new tokens are written, where the piece reads
// one and feeds has none.
func (s *Scorer) feedPlaces(pt dim.Point, feeds map[string]engine.Tensor) (err error) {
	if name := s.placesInput(); name != "" && feeds[name].Dims == nil {
		feeds[name], err = s.Loaded.Table.Places(pt.L, pt.P)
	}
	return err
}

// placesInput returns the name of that input, "" where the piece reads none.
func (s *Scorer) placesInput() string {
	t := s.Loaded.Table
	if t.Slotted() && slices.ContainsFunc(s.Loaded.Piece.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == t.Slots.Input.Name }) {
		return t.Slots.Input.Name
	}
	return ""
}

// MorePlaces reports whether the mask depends on more than the first of the places that new
// tokens are written to.
func (s *Scorer) MorePlaces(ctx context.Context) (bool, error) {
	name := s.placesInput()
	if name == "" {
		return false, nil
	}
	rng := rand.New(rand.NewPCG(23, 24))
	for _, pt := range s.points() {
		given, err := s.given(rng, pt, slices.Repeat([]int64{1}, int(pt.B*(pt.L+pt.P))))
		if err != nil {
			return false, err
		}
		want, err := s.ZeroRows(ctx, pt, given)
		if err != nil {
			return false, err
		}
		if given[name], err = s.Loaded.Table.Scattered(rng, pt); err != nil {
			return false, err
		}
		got, err := s.ZeroRows(ctx, pt, given)
		if err != nil || !slices.EqualFunc(got, want, func(a, b []float32) bool { return slices.Equal(a, b) }) {
			return true, nil
		}
	}
	return false, nil
}

// clamped returns sizes that the piece can be evaluated at, close to pt.
func (s *Scorer) clamped(pt dim.Point) dim.Point {
	t := s.Loaded.Table
	if !t.Slotted() || t.Slots.Rows == 0 {
		return t.Within(pt)
	}
	pt.L = min(pt.L, t.Slots.Rows)
	pt.P = min(pt.P, t.Slots.Rows-pt.L)
	return pt
}
