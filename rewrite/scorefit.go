package rewrite

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// scoreFit is what the function was measured to be: a curve of the score on
// visible keys, beside a bias where there is one; masked elsewhere.
type scoreFit struct {
	curve  curve
	mask   rope.Mask
	sinks  []float64         // per head; nil without
	tokens int64             // how many the graph can compute: a mask kept as a table ends
	others []*onnx.ValueInfo // integer inputs beside the padding mask that a bias is made of
	scalar bool              // a bias comes out right when scores are one zero
}

// curve is softcap·tanh(factor·x/softcap), or factor·x without a softcap.
type curve struct{ factor, softcap float64 }

func (c curve) at(x float64) float64 {
	if c.softcap == 0 {
		return c.factor * x
	}
	return c.softcap * math.Tanh(c.factor*x/c.softcap)
}

func (c curve) String() string {
	if c.softcap == 0 {
		return fmt.Sprintf("a factor of %g", c.factor)
	}
	return fmt.Sprintf("a factor of %g under a softcap of %g", c.factor, c.softcap)
}

// masked is the value below which a key counts as hidden, absolutely: after
// subtracting a row's maximum, a row of −FLT_MAX would look visible.
const masked = -9e3

// visible says whether the fitted mask shows key j to query i of row b.
func (f *scoreFit) visible(pt point, mask []int64, b, i, j int64) bool {
	total := pt.L + pt.P
	distance := pt.P + i - j
	switch {
	case f.mask.Causal && distance < 0:
		return false
	case f.mask.Window > 0 && (distance >= f.mask.Window || -distance >= f.mask.Window):
		return false
	case f.mask.Padding && mask[b*total+j] == 0:
		return false
	}
	return true
}

// shown says the same of a sample's row, which a bias may hide as well.
func (f *scoreFit) shown(smp sample, r int, b, i, j int64) bool {
	return f.visible(smp.pt, smp.mask, b, i, j) && (smp.base == nil || smp.base[r][j] > masked)
}

// first returns the first key that a row shows, −1 when it shows none.
func (f *scoreFit) first(smp sample, r int, b, i int64) int64 {
	for j := range smp.pt.L + smp.pt.P {
		if f.shown(smp, r, b, i, j) {
			return j
		}
	}
	return -1
}

// seesAsExpected compares which keys are visible with the fitted mask and bias.
func (s *scorer) seesAsExpected(fit *scoreFit, smp sample) error {
	total := smp.pt.L + smp.pt.P
	for r := range smp.out {
		h, b, i := s.place(smp.pt, r)
		if fit.first(smp, r, b, i) < 0 {
			continue // a query that sees no key carries no meaning
		}
		for j := range total {
			got := smp.out[r][j] > masked
			if smp.base != nil && !fit.shown(smp, r, b, i, j) {
				// What a finite bias hides, a large score may lift above the limit.
				got = smp.out[r][j] > masked+math.Abs(fit.curve.at(float64(smp.in[r][j])))
			}
			if want := fit.shown(smp, r, b, i, j); want != got {
				return fmt.Errorf("head %d, query %d, key %d (past %d%s): visible is %v, %v was expected of %s",
					h, i, j, smp.pt.P, describePadding(smp.mask[b*total:(b+1)*total]), got, want, describeMask(fit.mask))
			}
		}
	}
	return nil
}

// describePadding shows a row of padding where it is short enough to be read.
func describePadding(row []int64) string {
	if len(row) > 32 {
		return ""
	}
	return fmt.Sprintf(", padding %v", row)
}

// followsCurve compares the values of visible keys with the curve, up to one
// constant per row, which a softmax does not see, and the sinks with that.
func (s *scorer) followsCurve(fit *scoreFit, smp sample) (wrong error) {
	slack := 16 * float32eps
	if p := s.loaded.piece.precision(); p != rope.Float32 {
		slack = 2 * p.Epsilon()
	}
	s.visit(fit, smp, func(v visit) {
		want := fit.curve.at(v.x) - fit.curve.at(v.x0) + v.base - v.base0
		tolerance := slack * (math.Abs(v.y) + math.Abs(v.y0) + math.Abs(fit.curve.at(v.x)) + math.Abs(fit.curve.at(v.x0)) + fit.curve.softcap)
		if wrong == nil && !(math.Abs(v.y-v.y0-want) <= tolerance) {
			wrong = fmt.Errorf("head %d, query %d (past %d): scores %g and %g become %g and %g, which is not %v",
				v.head, v.query, smp.pt.P, v.x, v.x0, v.y, v.y0, fit.curve)
		}
	})
	if wrong == nil && s.extra > 0 {
		return s.sinks(fit, smp, slack)
	}
	return wrong
}

// visit is a visible key with its score x and value y, beside those of the
// first visible key of its row.
type visit struct {
	head, query               int64
	x, y, base, x0, y0, base0 float64
}

// visit calls f for every visible key.
func (s *scorer) visit(fit *scoreFit, smp sample, f func(visit)) {
	base := func(r int, j int64) float64 {
		if smp.base == nil {
			return 0
		}
		return smp.base[r][j]
	}
	for r := range smp.in {
		h, b, i := s.place(smp.pt, r)
		first := fit.first(smp, r, b, i)
		if first < 0 {
			continue
		}
		for j := first; j < smp.pt.L+smp.pt.P; j++ {
			if fit.shown(smp, r, b, i, j) {
				f(visit{h, i, float64(smp.in[r][j]), smp.out[r][j], base(r, j), float64(smp.in[r][first]), smp.out[r][first], base(r, first)})
			}
		}
	}
}

// sinks compares the column behind the keys with one logit per head, beside the
// same constant of the row.
func (s *scorer) sinks(fit *scoreFit, smp sample, slack float64) error {
	if fit.sinks == nil {
		fit.sinks = make([]float64, s.heads)
		for h := range fit.sinks {
			fit.sinks[h] = math.NaN()
		}
	}
	total := smp.pt.L + smp.pt.P
	for r := range smp.in {
		h, b, i := s.place(smp.pt, r)
		first := fit.first(smp, r, b, i)
		if first < 0 {
			continue
		}
		shift := smp.out[r][first] - fit.curve.at(float64(smp.in[r][first]))
		if smp.base != nil {
			shift -= smp.base[r][first]
		}
		logit := smp.out[r][total] - shift
		if math.IsNaN(fit.sinks[h]) {
			fit.sinks[h] = float64(float32(logit))
		}
		tolerance := slack * (math.Abs(shift) + math.Abs(smp.out[r][first]) + math.Abs(smp.out[r][total]) + math.Abs(fit.sinks[h]))
		if !(math.Abs(logit-fit.sinks[h]) <= tolerance) {
			return fmt.Errorf("head %d, query %d (past %d): the logit beside the keys is %g and elsewhere %g, one was expected",
				h, i, smp.pt.P, logit, fit.sinks[h])
		}
	}
	return nil
}

// fitCurve recovers the curve: the factor from all samples where loud ones are on
// the same line, else factor and softcap from quiet and loud ones in turn.
func (s *scorer) fitCurve(fit *scoreFit, samples []sample, loud sample) error {
	quiet := samples[:len(samples)/len(magnitudes)]
	line := func(list []sample, c curve) float64 { // the factor between values and a curve's
		var dot, norm float64
		for _, smp := range list {
			s.visit(fit, smp, func(v visit) {
				want := c.at(v.x) - c.at(v.x0)
				dot += want * (v.y - v.y0 - v.base + v.base0)
				norm += want * want
			})
		}
		return dot / norm
	}
	p := s.loaded.piece.precision()
	factor := line(samples, curve{factor: 1})
	if math.IsNaN(factor) {
		return errors.New("no query sees two keys, so what happens to scores cannot be measured")
	}
	fit.curve = curve{factor: snapped(factor, p)}
	spread, straight := 0.0, 0.0 // of loud scores, and what it would be on a line
	slope := line(quiet, curve{factor: 1})
	s.visit(fit, loud, func(v visit) {
		if d := math.Abs(slope * (v.x - v.x0)); d > straight {
			straight, spread = d, math.Abs(v.y-v.y0-v.base+v.base0)
		}
	})
	if !(spread < 0.999*straight) || slope <= 0 {
		return nil
	}
	c := curve{factor: slope}
	for range 8 {
		// The softcap at which a curve of this factor spreads as far.
		low, high := spread/2, 1e6
		for range 80 {
			c.softcap = (low + high) / 2
			widest := 0.0
			s.visit(fit, loud, func(v visit) { widest = math.Max(widest, math.Abs(c.at(v.x)-c.at(v.x0))) })
			if widest < spread {
				low = c.softcap
			} else {
				high = c.softcap
			}
		}
		c.factor *= line(quiet, c)
	}
	// A softcap is a number that somebody wrote down.
	off := 4 * math.Max(float32eps, p.Epsilon()) * c.softcap
	c.softcap = shortest(c.softcap-off, c.softcap+off)
	for range 8 {
		c.factor *= line(quiet, c)
	}
	c.factor = snapped(c.factor, p)
	fit.curve = c
	return nil
}
