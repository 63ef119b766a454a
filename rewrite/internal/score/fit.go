package score

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Fit is what was measured: the scores of visible keys follow a curve, plus a bias where
// there is one, the model's own or one by distance; the other keys are masked.
type Fit struct {
	Curve    Curve
	Mask     rope.Mask
	Distance rope.Distance     // a bias by distance; zero without
	Sinks    []float64         // per head; nil without
	Tokens   int64             // how many tokens the mask can be computed for: one that is kept as a table has an end
	Others   []*onnx.ValueInfo // the integer inputs, other than the padding mask, that a bias reads
	Exact    Exact             // what was compared without sampling
	Cases    Cases             // what happens to queries there

	byDistance bool // a bias by distance is searched
}

// seesAsExpected returns an error if a key of the sample is visible and should not be, by
// the fitted mask and bias, or the other way round.
func (s *Scorer) seesAsExpected(fit *Fit, smp Sample) error {
	total := smp.Pt.Keys()
	for r := range smp.out {
		h, b, i := s.place(smp.Pt, r)
		keys := fit.Shown(smp, r, b, i)
		if keys.First() < 0 {
			continue // exporters differ in what they give for a query that sees no key
		}
		out := smp.out[r]
		value := func(j int64) float64 { return float64(out[j]) }
		if fit.byDistance {
			value = s.unweighted(fit, smp, &keys, r)
		}
		for j := range total {
			got, want := value(j) > Masked, keys.Has(j)
			if smp.Base != nil && !want {
				// A large score may exceed the limit where a finite bias hides the key.
				got = float64(out[j]) > Masked+math.Abs(fit.Curve.at(float64(smp.in[r][j])))
			}
			if want != got {
				return fmt.Errorf("head %d, query %d, key %d (past %d%s): visible is %v, expected %v of %s",
					h, i, j, smp.Pt.P, describePadding(smp.Mask[b*total:(b+1)*total]), got, want, fit.Mask.String())
			}
		}
	}
	return nil
}

// describePadding prints a row of padding, if it is short enough to be read.
func describePadding(row []int64) string {
	if len(row) > 32 {
		return ""
	}
	return fmt.Sprintf(", padding %v", row)
}

// followsCurve compares the values of visible keys with the curve, up to one constant for
// each row, which a softmax ignores. It compares the sinks up to the same constant.
func (s *Scorer) followsCurve(fit *Fit, smp Sample) (wrong error) {
	slack := s.slack(fit.byDistance)
	s.visit(fit, smp, func(v *visit) {
		at, at0 := fit.Curve.at(v.x), fit.Curve.at(v.x0)
		want := at - at0 + v.base - v.base0
		tolerance := slack * (math.Abs(v.y) + math.Abs(v.y0) + math.Abs(at) + math.Abs(at0) + fit.Curve.Softcap)
		if wrong == nil && !(math.Abs(v.y-v.y0-want) <= tolerance) {
			wrong = fmt.Errorf("head %d, query %d (past %d): scores %g and %g become %g and %g, which is not %v",
				v.head, v.query, smp.Pt.P, v.x, v.x0, v.y, v.y0, fit.Curve)
		}
	})
	if wrong == nil && s.Extra > 0 {
		return s.sinks(fit, smp, slack)
	}
	return wrong
}

// visit is a visible key: its score x, value y and bias, and those of the first visible
// key of its row.
type visit struct {
	head, query               int64
	x, y, base, x0, y0, base0 float64
}

// visit calls f for every visible key. What f gets does not last.
func (s *Scorer) visit(fit *Fit, smp Sample, f func(*visit)) {
	for r, in := range smp.in {
		h, b, i := s.place(smp.Pt, r)
		keys := fit.Shown(smp, r, b, i)
		first := keys.First()
		if first < 0 {
			continue
		}
		out := smp.out[r]
		v := visit{head: h, query: i, x0: float64(in[first]), y0: float64(out[first])}
		base := s.base(fit, smp, r)
		v.base0 = base(first)
		for j := first; j < keys.to; j++ {
			if !keys.Has(j) {
				continue
			}
			v.x, v.y, v.base = float64(in[j]), float64(out[j]), base(j)
			f(&v)
		}
	}
}

// base returns the bias of each key in row r of a sample.
func (s *Scorer) base(fit *Fit, smp Sample, r int) func(key int64) float64 {
	h, b, i := s.place(smp.Pt, r)
	switch {
	case smp.Base != nil:
		return func(key int64) float64 { return float64(smp.Base[r][key]) }
	case fit.byDistance:
		return fit.weights(smp, h, b, i)
	}
	return func(int64) float64 { return 0 }
}

// sinks compares the column behind the keys with one logit for each head, up to the
// row's constant. The first sample sets fit.Sinks.
func (s *Scorer) sinks(fit *Fit, smp Sample, slack float64) error {
	if fit.Sinks == nil {
		fit.Sinks = make([]float64, s.Fed.Heads)
		for h := range fit.Sinks {
			fit.Sinks[h] = math.NaN()
		}
	}
	total := smp.Pt.Keys()
	for r := range smp.in {
		h, b, i := s.place(smp.Pt, r)
		keys := fit.Shown(smp, r, b, i)
		first := keys.First()
		if first < 0 {
			continue
		}
		beside, last := float64(smp.out[r][first]), float64(smp.out[r][total])
		shift := beside - fit.Curve.at(float64(smp.in[r][first])) - s.base(fit, smp, r)(first)
		logit := last - shift
		if math.IsNaN(fit.Sinks[h]) {
			fit.Sinks[h] = float64(float32(logit))
		}
		tolerance := slack * (math.Abs(shift) + math.Abs(beside) + math.Abs(last) + math.Abs(fit.Sinks[h]))
		if !(math.Abs(logit-fit.Sinks[h]) <= tolerance) {
			return fmt.Errorf("head %d, query %d (past %d): the logit beside the keys is %g and elsewhere %g, expected one",
				h, i, smp.Pt.P, logit, fit.Sinks[h])
		}
	}
	return nil
}
