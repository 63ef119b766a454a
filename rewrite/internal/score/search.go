package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// magnitudes are those of the scores that fit takes samples of, the small ones first.
var magnitudes = []float64{0.5, 5, 40}

// fitWith recovers mask and curve, and checks both on random padding, several sizes
// and scores of several magnitudes.
func (s *Scorer) fitWith(ctx context.Context, fit *Fit) (*Fit, error) {
	rng := rand.New(rand.NewPCG(3, 4))
	if err := s.structure(ctx, rng, fit); err != nil {
		return nil, err
	}
	var samples []Sample
	for _, magnitude := range magnitudes {
		for i, pt := range s.points() {
			smp, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, i), func() float64 { return magnitude * rng.NormFloat64() })
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
	}
	pt := s.within(dim.Point{B: 2, L: 5, P: 4})
	loud, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, 0), func() float64 { return 6e4*rng.Float64() - 3e4 })
	if err != nil {
		return nil, err
	}
	if err := s.fitCurve(fit, samples, loud); err != nil {
		return nil, err
	}
	for _, smp := range samples {
		if err := s.agrees(fit, smp); err != nil {
			return nil, err
		}
	}
	// Where hidden keys get −1e4, loud scores would make them visible: only those that are seen count.
	if err := s.followsCurve(fit, loud); err != nil {
		return nil, err
	}
	if err := s.extremes(ctx, fit, rng); err != nil {
		return nil, err
	}
	if err := s.everyRow(ctx, fit, rng); err != nil {
		return nil, err
	}
	if !(fit.Curve.Factor > 0) {
		return nil, fmt.Errorf("scores are multiplied by %g", fit.Curve.Factor)
	}
	if fit.Mask.Bias {
		fit.Others = s.Others
	}
	return fit, nil
}

// agrees compares a sample with the fit.
func (s *Scorer) agrees(fit *Fit, smp Sample) error {
	if err := s.seesAsExpected(fit, smp); err != nil {
		return err
	}
	return s.followsCurve(fit, smp)
}

// MaxStatic bounds the elements of the mask of a model of fixed length.
const MaxStatic = 1 << 25

// maxWhole bounds the elements of a mask that is computed for all pairs of tokens.
const maxWhole = 1 << 24

// structure reads causality and window from unpadded rows, and whether the
// padding mask hides keys. Beside a bias only causality is read.
func (s *Scorer) structure(ctx context.Context, rng *rand.Rand, fit *Fit) error {
	pt := s.within(dim.Point{B: 2, L: 5, P: 4})
	out, err := s.unpadded(ctx, rng, pt)
	if err != nil {
		return err
	}
	fit.Mask.Causal = true
	for r, row := range out {
		_, _, i := s.place(pt, r)
		for j := pt.P + i + 1; j < pt.P+pt.L; j++ {
			if row[j] > Masked { // a key that comes later
				fit.Mask.Causal = false
			}
		}
	}
	few := s.Loaded.Table.Within(dim.Point{B: 1, L: 3})
	if first, err := s.unpadded(ctx, rng, few); err != nil {
		return err
	} else if fit.Mask.Bias {
		for _, row := range first {
			// A query that sees no key may average all keys, the later ones too.
			if slices.Max(row[:few.L]) <= Masked {
				fit.Mask.Causal = false
			}
		}
	}
	if s.Whole && !s.ends() {
		// What holds of few tokens need not hold of many: the bias has it all.
		fit.Mask.Causal = false
		s.longest = 1
		for (s.longest+2)*(s.longest+2)*s.Heads <= maxWhole && s.longest < 2047 {
			s.longest++
		}
		fit.Tokens = dim.Longest + 1
		return nil
	}
	// One row as long as windows get: the last query and all keys before it.
	s.longest, err = rotation.Farthest(s.Loaded.Table.Within(dim.Point{B: 1, L: 1, P: dim.Longest}).P, func(past int64) (int64, error) {
		rows, err := s.unpadded(ctx, rng, dim.Point{B: 1, L: 1, P: past})
		if err == nil {
			out = rows
		}
		return past, err
	})
	if err != nil {
		return err
	}
	fit.Tokens = s.longest + 1
	if f := s.Loaded.Table.Static; f.P > 0 {
		fit.Tokens = f.P + f.L
	}
	if fit.Mask.Causal {
		if fit.Mask.Causal, err = s.hidesLater(ctx, rng); err != nil {
			return err
		}
	}
	if fit.Mask.Bias {
		return nil
	}
	seen := int64(0)
	for _, v := range out[0][:s.longest+1] {
		seen += eval.B2i(v > Masked)
	}
	if seen <= s.longest {
		fit.Mask.Window = seen
	}
	fit.Mask.Padding = s.Mask != ""
	return nil
}

// unpadded returns the values of zero scores without padding.
func (s *Scorer) unpadded(ctx context.Context, rng *rand.Rand, pt dim.Point) ([][]float64, error) {
	given, err := s.given(rng, pt, slices.Repeat([]int64{1}, int(pt.B*(pt.L+pt.P))))
	if err != nil {
		return nil, err
	}
	_, out, err := s.Rows(ctx, pt, Zero, given)
	return out, err
}

// extremes checks the fit where small samples do not reach: one query with very
// many keys before it (windows, chunks, biases and factors that begin far away).
func (s *Scorer) extremes(ctx context.Context, fit *Fit, rng *rand.Rand) error {
	far := []int64{4095, 20011, 100_003, s.longest}
	switch {
	case s.ends():
		far = []int64{s.longest / 2, s.longest}
	case s.Whole:
		far = []int64{300, s.longest}
	}
	if w := fit.Mask.Window; w > 0 {
		far = append(far, w-1, w, w+w/2+1)
	}
	for i, past := range far {
		pt := dim.Point{B: 1, L: 1, P: min(past, s.longest)}
		smp, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, 3*(i%2)), func() float64 { return 5 * rng.NormFloat64() })
		if err != nil {
			return err
		}
		if err := s.agrees(fit, smp); err != nil {
			return err
		}
	}
	return nil
}

// maxTable is the number of tokens up to which a mask that is kept as a table
// is looked at, row by row.
const maxTable = 8192

// everyRow checks the fit at every query of a mask that ends somewhere: it is a
// table, of which each entry may be anything. A bias is the table itself.
func (s *Scorer) everyRow(ctx context.Context, fit *Fit, rng *rand.Rand) error {
	if s.longest == dim.Longest || s.Whole && !s.ends() || fit.Mask.Bias && !fit.Mask.Causal {
		return nil
	}
	if s.longest >= maxTable {
		return fmt.Errorf("it is kept as a table for %d tokens; up to %d are looked at", s.longest+1, maxTable)
	}
	some := max(1<<20/(s.Heads*(s.longest+1)), 1)
	switch {
	case s.ends():
		some = s.longest + 1
	case s.Loaded.Table.Static.L > 0:
		some = min(some, s.Loaded.Table.Static.L)
	}
	for first := int64(0); first <= s.longest; first += some {
		pt := s.Loaded.Table.Within(dim.Point{B: 1, L: min(some, s.longest+1-first), P: first})
		smp, err := s.sample(ctx, rng, fit, pt, eval.Padding(rng, pt, 0), rng.NormFloat64)
		if err != nil {
			return err
		}
		if err := s.agrees(fit, smp); err != nil {
			return err
		}
	}
	return nil
}

func DescribeMask(m rope.Mask) string {
	s := "bidirectional"
	if m.Causal {
		s = "causal"
	}
	if m.Window > 0 {
		s += fmt.Sprintf(" + window %d", m.Window)
	}
	if m.FirstKeys > 0 {
		s += fmt.Sprintf(" + first %d keys", m.FirstKeys)
	}
	if m.Padding {
		s += " + padding"
	}
	if m.Bias {
		s += " + the model's own bias"
	}
	return s
}
