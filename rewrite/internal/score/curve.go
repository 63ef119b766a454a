package score

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Curve is what becomes of a score x: softcap·tanh(factor·x/softcap), or factor·x where
// Softcap is 0.
type Curve struct{ Factor, Softcap float64 }

// at returns what becomes of a score.
func (c Curve) at(x float64) float64 {
	if c.Softcap == 0 {
		return c.Factor * x
	}
	return c.Softcap * math.Tanh(c.Factor*x/c.Softcap)
}

// String is the curve in words.
func (c Curve) String() string {
	if c.Softcap == 0 {
		return fmt.Sprintf("a factor of %g", c.Factor)
	}
	return fmt.Sprintf("a factor of %g under a softcap of %g", c.Factor, c.Softcap)
}

// fitCurve finds the curve. Where large scores are on the same line as small ones, the
// factor follows from all samples. Otherwise the factor follows from the small scores and
// the softcap from the large ones, alternately until both are known.
func (s *Scorer) fitCurve(fit *Fit, samples []Sample, large Sample) error {
	small := samples[:len(samples)/len(magnitudes)]
	line := func(list []Sample, c Curve) float64 { // the factor between the values and those of c
		var dot, norm float64
		for _, smp := range list {
			s.visit(fit, smp, func(v *visit) {
				want := c.at(v.x) - c.at(v.x0)
				dot += want * (v.y - v.y0 - v.base + v.base0)
				norm += want * want
			})
		}
		return dot / norm
	}
	p := s.Loaded.Piece.Precision()
	factor := line(samples, Curve{Factor: 1})
	if math.IsNaN(factor) {
		return errors.New("no query sees two keys, so the change of scores cannot be measured")
	}
	fit.Curve = Curve{Factor: ir.Snapped(factor, p)}
	spread, straight := 0.0, 0.0 // largest difference of large scores, and what it would be on a line
	slope := line(small, Curve{Factor: 1})
	s.visit(fit, large, func(v *visit) {
		if d := math.Abs(slope * (v.x - v.x0)); d > straight {
			straight, spread = d, math.Abs(v.y-v.y0-v.base+v.base0)
		}
	})
	if !(spread < 0.999*straight) || slope <= 0 {
		return nil
	}
	c := Curve{Factor: slope}
	for range 8 {
		// The softcap at which a curve with this factor has the same largest difference.
		low, high := spread/2, 1e6
		for range 80 {
			c.Softcap = (low + high) / 2
			widest := 0.0
			s.visit(fit, large, func(v *visit) { widest = math.Max(widest, math.Abs(c.at(v.x)-c.at(v.x0))) })
			if widest < spread {
				low = c.Softcap
			} else {
				high = c.Softcap
			}
		}
		c.Factor *= line(small, c)
	}
	// Somebody chose the softcap, so it is a number with few digits.
	off := 4 * math.Max(ir.Float32eps, p.Epsilon()) * c.Softcap
	c.Softcap = bisect.Shortest(c.Softcap-off, c.Softcap+off)
	for range 8 {
		c.Factor *= line(small, c)
	}
	c.Factor = ir.Snapped(c.Factor, p)
	fit.Curve = c
	return nil
}
