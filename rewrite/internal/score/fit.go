package score

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Fit is what the function was measured to be: a curve of the score on
// visible keys, beside a bias where there is one; masked elsewhere.
type Fit struct {
	Curve  curve
	Mask   rope.Mask
	Sinks  []float64         // per head; nil without
	Tokens int64             // how many the graph can compute: a mask kept as a table ends
	Others []*onnx.ValueInfo // integer inputs beside the padding mask that a bias is made of
	Scalar bool              // a bias comes out right when scores are one zero
}

// curve is softcap·tanh(factor·x/softcap), or factor·x without a softcap.
type curve struct{ Factor, Softcap float64 }

func (c curve) at(x float64) float64 {
	if c.Softcap == 0 {
		return c.Factor * x
	}
	return c.Softcap * math.Tanh(c.Factor*x/c.Softcap)
}

func (c curve) String() string {
	if c.Softcap == 0 {
		return fmt.Sprintf("a factor of %g", c.Factor)
	}
	return fmt.Sprintf("a factor of %g under a softcap of %g", c.Factor, c.Softcap)
}

// Masked is the value below which a key counts as hidden, absolutely: after
// subtracting a row's maximum, a row of −FLT_MAX would look visible.
const Masked = -9e3

// visible says whether the fitted mask shows key j to query i of row b.
func (f *Fit) visible(pt dim.Point, mask []int64, b, i, j int64) bool {
	total := pt.L + pt.P
	distance := pt.P + i - j
	switch {
	case f.Mask.Causal && distance < 0:
		return false
	case f.Mask.Window > 0 && (distance >= f.Mask.Window || -distance >= f.Mask.Window):
		return false
	case f.Mask.Padding && mask[b*total+j] == 0:
		return false
	}
	return true
}

// Shown says the same of a sample's row, which a bias may hide as well.
func (f *Fit) Shown(smp Sample, r int, b, i, j int64) bool {
	return f.visible(smp.Pt, smp.Mask, b, i, j) && (smp.Base == nil || smp.Base[r][j] > Masked)
}

// First returns the first key that a row shows, −1 when it shows none.
func (f *Fit) First(smp Sample, r int, b, i int64) int64 {
	for j := range smp.Pt.L + smp.Pt.P {
		if f.Shown(smp, r, b, i, j) {
			return j
		}
	}
	return -1
}

// seesAsExpected compares which keys are visible with the fitted mask and bias.
func (s *Scorer) seesAsExpected(fit *Fit, smp Sample) error {
	total := smp.Pt.L + smp.Pt.P
	for r := range smp.out {
		h, b, i := s.place(smp.Pt, r)
		if fit.First(smp, r, b, i) < 0 {
			continue // a query that sees no key carries no meaning
		}
		for j := range total {
			got := smp.out[r][j] > Masked
			if smp.Base != nil && !fit.Shown(smp, r, b, i, j) {
				// What a finite bias hides, a large score may lift above the limit.
				got = smp.out[r][j] > Masked+math.Abs(fit.Curve.at(float64(smp.in[r][j])))
			}
			if want := fit.Shown(smp, r, b, i, j); want != got {
				return fmt.Errorf("head %d, query %d, key %d (past %d%s): visible is %v, %v was expected of %s",
					h, i, j, smp.Pt.P, describePadding(smp.Mask[b*total:(b+1)*total]), got, want, DescribeMask(fit.Mask))
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
func (s *Scorer) followsCurve(fit *Fit, smp Sample) (wrong error) {
	slack := 16 * ir.Float32eps
	if p := s.Loaded.Piece.Precision(); p != rope.Float32 {
		slack = 2 * p.Epsilon()
	}
	s.visit(fit, smp, func(v visit) {
		want := fit.Curve.at(v.x) - fit.Curve.at(v.x0) + v.base - v.base0
		tolerance := slack * (math.Abs(v.y) + math.Abs(v.y0) + math.Abs(fit.Curve.at(v.x)) + math.Abs(fit.Curve.at(v.x0)) + fit.Curve.Softcap)
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

// visit is a visible key with its score x and value y, beside those of the
// first visible key of its row.
type visit struct {
	head, query               int64
	x, y, base, x0, y0, base0 float64
}

// visit calls f for every visible key.
func (s *Scorer) visit(fit *Fit, smp Sample, f func(visit)) {
	base := func(r int, j int64) float64 {
		if smp.Base == nil {
			return 0
		}
		return smp.Base[r][j]
	}
	for r := range smp.in {
		h, b, i := s.place(smp.Pt, r)
		first := fit.First(smp, r, b, i)
		if first < 0 {
			continue
		}
		for j := first; j < smp.Pt.L+smp.Pt.P; j++ {
			if fit.Shown(smp, r, b, i, j) {
				f(visit{h, i, float64(smp.in[r][j]), smp.out[r][j], base(r, j), float64(smp.in[r][first]), smp.out[r][first], base(r, first)})
			}
		}
	}
}

// sinks compares the column behind the keys with one logit per head, beside the
// same constant of the row.
func (s *Scorer) sinks(fit *Fit, smp Sample, slack float64) error {
	if fit.Sinks == nil {
		fit.Sinks = make([]float64, s.Heads)
		for h := range fit.Sinks {
			fit.Sinks[h] = math.NaN()
		}
	}
	total := smp.Pt.L + smp.Pt.P
	for r := range smp.in {
		h, b, i := s.place(smp.Pt, r)
		first := fit.First(smp, r, b, i)
		if first < 0 {
			continue
		}
		shift := smp.out[r][first] - fit.Curve.at(float64(smp.in[r][first]))
		if smp.Base != nil {
			shift -= smp.Base[r][first]
		}
		logit := smp.out[r][total] - shift
		if math.IsNaN(fit.Sinks[h]) {
			fit.Sinks[h] = float64(float32(logit))
		}
		tolerance := slack * (math.Abs(shift) + math.Abs(smp.out[r][first]) + math.Abs(smp.out[r][total]) + math.Abs(fit.Sinks[h]))
		if !(math.Abs(logit-fit.Sinks[h]) <= tolerance) {
			return fmt.Errorf("head %d, query %d (past %d): the logit beside the keys is %g and elsewhere %g, one was expected",
				h, i, smp.Pt.P, logit, fit.Sinks[h])
		}
	}
	return nil
}

// fitCurve recovers the curve: the factor from all samples where loud ones are on
// the same line, else factor and softcap from quiet and loud ones in turn.
func (s *Scorer) fitCurve(fit *Fit, samples []Sample, loud Sample) error {
	quiet := samples[:len(samples)/len(magnitudes)]
	line := func(list []Sample, c curve) float64 { // the factor between values and a curve's
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
	p := s.Loaded.Piece.Precision()
	factor := line(samples, curve{Factor: 1})
	if math.IsNaN(factor) {
		return errors.New("no query sees two keys, so what happens to scores cannot be measured")
	}
	fit.Curve = curve{Factor: ir.Snapped(factor, p)}
	spread, straight := 0.0, 0.0 // of loud scores, and what it would be on a line
	slope := line(quiet, curve{Factor: 1})
	s.visit(fit, loud, func(v visit) {
		if d := math.Abs(slope * (v.x - v.x0)); d > straight {
			straight, spread = d, math.Abs(v.y-v.y0-v.base+v.base0)
		}
	})
	if !(spread < 0.999*straight) || slope <= 0 {
		return nil
	}
	c := curve{Factor: slope}
	for range 8 {
		// The softcap at which a curve of this factor spreads as far.
		low, high := spread/2, 1e6
		for range 80 {
			c.Softcap = (low + high) / 2
			widest := 0.0
			s.visit(fit, loud, func(v visit) { widest = math.Max(widest, math.Abs(c.at(v.x)-c.at(v.x0))) })
			if widest < spread {
				low = c.Softcap
			} else {
				high = c.Softcap
			}
		}
		c.Factor *= line(quiet, c)
	}
	// A softcap is a number that somebody wrote down.
	off := 4 * math.Max(ir.Float32eps, p.Epsilon()) * c.Softcap
	c.Softcap = rotation.Shortest(c.Softcap-off, c.Softcap+off)
	for range 8 {
		c.Factor *= line(quiet, c)
	}
	c.Factor = ir.Snapped(c.Factor, p)
	fit.Curve = c
	return nil
}
