package score

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// magnitudes are the standard deviations of the scores in the samples, small ones first.
var magnitudes = []float64{0.5, 5, 40}

// fitWith finds mask and curve and returns them in fit, which says whether a bias is
// tried. It checks both on random padding, at several sizes, with scores of several
// magnitudes.
func (s *Scorer) fitWith(ctx context.Context, fit *Fit) (*Fit, error) {
	own := *s // structure finds how far its rows reach
	s = &own
	rng := rand.New(rand.NewPCG(3, 4))
	if err := s.structure(ctx, rng, fit); err != nil {
		return nil, err
	}
	var samples []Sample
	for _, magnitude := range magnitudes {
		for i, pt := range s.points() {
			smp, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, eval.PaddingKind(i)), func() float64 { return magnitude * rng.NormFloat64() })
			if err != nil {
				return nil, err
			}
			samples = append(samples, smp)
		}
	}
	if !fit.Mask.Bias {
		for _, smp := range samples {
			if err := s.seesAsExpected(fit, smp); err != nil {
				return nil, err
			}
		}
		if err := s.oneText(ctx, fit); err != nil {
			return nil, err
		}
	}
	pt := s.within(dim.Point{B: 2, L: 5, P: 4})
	large, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, eval.NoPadding), func() float64 { return 6e4*rng.Float64() - 3e4 })
	if err != nil {
		return nil, err
	}
	if err := s.fitCurve(fit, samples, large); err != nil {
		return nil, err
	}
	for _, smp := range samples {
		if err := s.agrees(fit, smp); err != nil {
			return nil, err
		}
	}
	// Where hidden keys get −1e4, large scores make them visible: only visible keys are compared.
	if err := s.followsCurve(fit, large); err != nil {
		return nil, err
	}
	if err := s.extremes(ctx, fit, rng); err != nil {
		return nil, err
	}
	if err := s.everyRow(ctx, fit, rng); err != nil {
		return nil, err
	}
	if err := s.positive(fit); err != nil {
		return nil, err
	}
	if fit.Exact, err = s.Exact(ctx, fit); err != nil {
		return nil, err
	}
	if fit.Mask.Bias {
		fit.Others = s.Others
	}
	return fit, nil
}

// positive returns an error for a curve that falls.
func (s *Scorer) positive(fit *Fit) error {
	if !(fit.Curve.Factor > 0) {
		return fmt.Errorf("scores are multiplied by %g", fit.Curve.Factor)
	}
	return nil
}

// agrees returns an error if a sample differs from the fit.
func (s *Scorer) agrees(fit *Fit, smp Sample) error {
	if err := s.seesAsExpected(fit, smp); err != nil {
		return err
	}
	return s.followsCurve(fit, smp)
}

// extremes checks the fit with one query and very many keys before it: windows, chunks,
// biases and factors may begin far from the query.
func (s *Scorer) extremes(ctx context.Context, fit *Fit, rng *rand.Rand) error {
	far := s.far()
	if w := fit.Mask.Window; w > 0 {
		far = append(far, w-1, w, w+w/2+1)
	}
	for i, past := range far {
		padding := eval.NoPadding
		if i%2 == 1 {
			padding = eval.HolePadding
		}
		pt := dim.Point{B: 1, L: 1, P: min(past, s.longest)}
		smp, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, padding), func() float64 { return 5 * rng.NormFloat64() })
		if err != nil {
			return err
		}
		if err := s.agrees(fit, smp); err != nil {
			return err
		}
	}
	return nil
}

// far is how many keys there are before the query where many are looked at.
func (s *Scorer) far() []int64 {
	switch {
	case s.ends():
		return []int64{s.longest / 2, s.longest}
	case s.whole:
		return []int64{300, s.longest}
	}
	far := []int64{4095, 20011, 100_003, s.longest}
	for i := range far {
		far[i] = min(far[i], s.longest)
	}
	return far
}

// maxTable is the largest number of tokens of a mask that the graph keeps as a table: all
// of its rows are evaluated.
const maxTable = 8192

// everyRow checks the fit at every query of a mask that has an end. Such a mask is a
// table, and each of its elements may be anything. A bias has the table itself.
func (s *Scorer) everyRow(ctx context.Context, fit *Fit, rng *rand.Rand) error {
	if s.longest == dim.Longest || s.overflows || s.whole && !s.ends() || fit.Mask.Bias && !fit.Mask.Causal {
		return nil
	}
	if s.longest >= maxTable {
		if fit.byDistance && !s.hasTable() {
			return nil
		}
		return fmt.Errorf("it is a table for %d tokens, above the limit of %d", s.longest+1, maxTable)
	}
	some := max(1<<20/(s.Fed.Heads*(s.longest+1)), 1)
	switch {
	case s.ends():
		some = s.longest + 1
	case s.Loaded.Table.Static.L > 0:
		some = min(some, s.Loaded.Table.Static.L)
	}
	for first := int64(0); first <= s.longest; first += some {
		pt := s.clamped(dim.Point{B: 1, L: min(some, s.longest+1-first), P: first})
		smp, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, eval.NoPadding), rng.NormFloat64)
		if err != nil {
			return err
		}
		if err := s.agrees(fit, smp); err != nil {
			return err
		}
	}
	return nil
}

// hasTable reports whether the graph keeps a table with a number for each two of its tokens.
func (s *Scorer) hasTable() bool {
	return slices.ContainsFunc(s.Loaded.Piece.Consts, func(t *onnx.Tensor) bool { return engine.Elements(t.Dims)/s.longest >= s.longest })
}

// byDistance fits a bias by distance, counted in tokens, or in those that the padding mask shows.
func (s *Scorer) byDistance(ctx context.Context) (*Fit, error) {
	fit, err := s.fitWith(ctx, &Fit{byDistance: true})
	if err == nil || bisect.Ended(err) || s.Mask == "" {
		return fit, err
	}
	return s.fitWith(ctx, &Fit{byDistance: true, Distance: rope.Distance{Shown: true}})
}

// Measure finds what becomes of scores: first as a mask that the op knows, then with a bias by
// distance and, where that fails, as a bias that the exporter's graph computes and the op adds. The error says what
// differs.
func (s *Scorer) Measure(ctx context.Context) (*Fit, error) {
	if len(s.Biases) > 0 {
		if s.Loaded.Table.Slotted() {
			return nil, fmt.Errorf("%q is added to it, which would need as many columns as the cache has rows", short.Name(s.Biases[0].Value))
		}
		fit, err := s.fitWith(ctx, &Fit{Mask: rope.Mask{Bias: true}})
		if err != nil && !bisect.Ended(err) {
			err = fmt.Errorf("scores are not those of a product to which %q is added: %w", short.Name(s.Biases[0].Value), err)
		}
		return fit, err
	}
	unlike := errors.New("it depends on more than a padding mask")
	if len(s.Others) == 0 && (!s.whole || s.ends()) {
		fit, err := s.fitWith(ctx, &Fit{})
		if err == nil || bisect.Ended(err) {
			return fit, err
		}
		unlike = err
		if fit, err := s.byDistance(ctx); err == nil || bisect.Ended(err) {
			return fit, err
		}
	}
	if s.Loaded.Table.Slotted() {
		return nil, unlike // a bias would have as many columns as buffers have rows
	}
	fit, err := s.fitWith(ctx, &Fit{Mask: rope.Mask{Bias: true}})
	if err == nil || bisect.Ended(err) {
		return fit, err
	}
	return nil, fmt.Errorf("%w; and it is not a bias on scores: %w", unlike, err)
}
