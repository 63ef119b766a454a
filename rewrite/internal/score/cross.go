package score

import (
	"context"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// crossPoints are sizes of calls whose keys are those of another text. Length, past and source
// differ in every way: what the graph does to scores may depend on none of them.
var crossPoints = []dim.Point{{B: 2, L: 5, S: 7}, {B: 3, L: 4, P: 6, S: 2}, {B: 2, L: 1, P: 9, S: 11}, {B: 2, L: 9, P: 3, S: 9}, {B: 1, L: 7, P: 2, S: 30}}

// farCrossPoints have many queries, many keys or a long past.
var farCrossPoints = []dim.Point{{B: 1, L: 1, S: dim.Longest}, {B: 1, L: 1, P: 20_011, S: 4095}, {B: 1, L: 4095, S: 3}, {B: 1, L: 300, P: dim.Longest, S: 301}}

// MeasureCross finds what becomes of scores against the keys of another text: a curve, and a
// mask of that text where there is one. The error says what else happens to them.
func (s *Scorer) MeasureCross(ctx context.Context) (*Fit, error) {
	fit := &Fit{Mask: rope.Mask{Padding: s.Mask != ""}}
	rng := rand.New(rand.NewPCG(3, 5))
	sample := func(pt dim.Point, i int, score func() float64) (Sample, error) {
		smp, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, eval.PaddingKind(i)), score)
		if err == nil {
			err = s.seesAsExpected(fit, smp)
		}
		return smp, err
	}
	var samples []Sample
	for _, magnitude := range magnitudes {
		for i, pt := range crossPoints {
			smp, err := sample(pt, i, func() float64 { return magnitude * rng.NormFloat64() })
			if err != nil {
				return nil, err
			}
			samples = append(samples, smp)
		}
	}
	large, err := s.sample(ctx, rng, fit, crossPoints[0], eval.Padding(rng, crossPoints[0], eval.NoPadding), func() float64 { return 6e4*rng.Float64() - 3e4 })
	if err != nil {
		return nil, err
	}
	if err := s.fitCurve(fit, samples, large); err != nil {
		return nil, err
	}
	for i, pt := range farCrossPoints {
		smp, err := sample(pt, i, func() float64 { return 5 * rng.NormFloat64() })
		if err != nil {
			return nil, err
		}
		samples = append(samples, smp)
	}
	for _, smp := range append(samples, large) {
		if err := s.followsCurve(fit, smp); err != nil {
			return nil, err
		}
	}
	return fit, s.positive(fit)
}
