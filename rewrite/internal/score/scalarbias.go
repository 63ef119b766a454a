package score

import (
	"context"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// ScalarBias reports whether the bias is the same when a single zero is fed as scores, in
// place of zeros of the scores' shape. The bias can then be computed without scores.
func (s *Scorer) ScalarBias(ctx context.Context) bool {
	if s.Fed.Folded || s.Read.Folded {
		return false // a single zero says nothing of how many batches and heads one dimension has
	}
	rng := rand.New(rand.NewPCG(11, 12))
	for i, pt := range []dim.Point{{B: 2, L: 5, P: 4}, {B: 3, L: 1, P: 9}, {B: 1, L: 4, P: 0}} {
		pt = s.clamped(pt)
		given, err := s.given(rng, pt, eval.Padding(rng, pt, eval.PaddingKind(i)))
		if err != nil {
			return false
		}
		want, err := s.ZeroRows(ctx, pt, given)
		if err != nil {
			return false
		}
		given[s.In] = engine.Float32s(make([]float32, 1), 1, 1, 1, 1)
		_, sizes := s.sizes(pt)
		result, err := s.Loaded.Run(ctx, sizes, given)
		if err != nil || len(result[s.Out].Dims) != 4 {
			return false
		}
		got := result[s.Out]
		values := got.Float32s()
		computed, _ := s.sizes(pt)
		full := []int64{pt.B, s.Fed.Heads, computed, pt.L + pt.P + s.Extra}
		for d, n := range got.Dims {
			if n != 1 && n != full[d] || d == 3 && n != full[d] && s.Extra > 0 {
				return false
			}
		}
		for r, row := range want {
			h, b, q := s.place(pt, r)
			for j, x := range row {
				at := int64(0)
				for d, i := range []int64{b, h, computed - pt.L + q, int64(j)} {
					at = at*got.Dims[d] + min(i, got.Dims[d]-1)
				}
				if values[at] != x {
					return false
				}
			}
		}
	}
	return true
}
