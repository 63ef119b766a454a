package score

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// States fills x with what a hidden state may hold that is added to scores: normal numbers
// of some magnitude and, where it may hide keys, −∞ and the lowest number among them. What
// is subtracted is their opposite.
func States(rng *rand.Rand, x []float32, b site.Bias, magnitude float64) {
	for i := range x {
		x[i] = float32(magnitude * rng.NormFloat64())
		if b.Hides {
			switch rng.IntN(16) {
			case 0:
				x[i] = float32(math.Inf(-1))
			case 1:
				x[i] = -math.MaxFloat32
			}
		}
		if b.Subtracted {
			x[i] = -x[i]
		}
	}
}

// feedBiases adds random numbers to feeds for the hidden states that are added to scores.
func (s *Scorer) feedBiases(rng *rand.Rand, sizes dim.Point, feeds map[string]engine.Tensor) error {
	magnitude := magnitudes[rng.IntN(len(magnitudes))]
	for _, b := range s.Biases {
		dims := dim.Evaluate(s.Loaded.Table.Dims[b.Value], sizes)
		elements, err := bound.Elements(dims)
		if err == nil {
			err = probed(elements, dims)
		}
		if err != nil {
			return err
		}
		x := make([]float32, elements)
		States(rng, x, b, magnitude)
		feeds[b.Value] = s.Loaded.Piece.State(b.Value, x, dims...)
	}
	return nil
}

// feedLarge replaces these numbers by very large ones: a mask that is added hides no key
// from them unless its numbers are larger still.
func (s *Scorer) feedLarge(rng *rand.Rand, feeds map[string]engine.Tensor) {
	for _, b := range s.Biases {
		t := feeds[b.Value]
		x := slices.Clone(t.Float32s())
		for i := range x {
			if x[i] = 1e30 * (1 + rng.Float32()); b.Subtracted {
				x[i] = -x[i]
			}
		}
		feeds[b.Value] = s.Loaded.Piece.State(b.Value, x, t.Dims...)
	}
}

// mayHide reports whether a hidden state that is added to scores may hide keys.
func (s *Scorer) mayHide() bool {
	return slices.ContainsFunc(s.Biases, func(b site.Bias) bool { return b.Hides })
}

// hidesPadding reports whether the padding mask hides keys from all queries, whatever is
// added to scores. The op may then be given the mask too, beside the bias that has it: by
// it the op tells which tokens' positions count.
func (s *Scorer) hidesPadding(ctx context.Context, rng *rand.Rand) (bool, error) {
	if s.Mask == "" || len(s.Biases) == 0 || s.mayHide() {
		return false, nil
	}
	for i, pt := range s.points() {
		mask := eval.Padding(rng, pt, eval.PaddingKind(i))
		given, err := s.given(rng, pt, mask)
		if err != nil {
			return false, err
		}
		s.feedLarge(rng, given)
		rows, err := s.ZeroRows(ctx, pt, given)
		if err != nil {
			return false, err
		}
		for r, row := range rows {
			_, b, _ := s.place(pt, r)
			for j, real := range mask[b*(pt.L+pt.P):][:pt.L+pt.P] {
				if real == 0 && row[j] > Masked {
					return false, nil
				}
			}
		}
	}
	return true, nil
}
