package rotation

import (
	"context"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Most graphs multiply position and frequency in float32. A table of cosines that was made in
// float64 and then rounded (RoFormer's) has exact angles, often of frequencies that float32
// cannot hold either.

// anglesFrom is how many consecutive positions show how angles are rounded, and anglesTo the
// largest of them: far enough for float32 to round an angle by more than a cosine.
const (
	anglesFrom = 64
	anglesTo   = 4095
)

// measureAngles notes whether the branch of a fit in float32 has exact angles. Its frequencies
// are then measured anew: rounded angles show them at the powers of two alone, exact ones at
// every position.
func (r *Rotator) measureAngles(ctx context.Context, fit *Matrix) error {
	e := &fit.Encoding
	last := min(fit.Limit, anglesTo)
	if r.Precision != rope.Float32 || r.Angles != rope.Float32 || len(e.Frequencies) == 0 || last < 2 {
		return nil
	}
	var positions []int64
	for p := max(last-anglesFrom+1, 0); p <= last; p++ {
		positions = append(positions, p)
	}
	probe := make([]float32, r.In.Channels)
	for x := range e.Frequencies {
		a, _ := PairAt(*e, x)
		probe[a] = 1
	}
	y, err := r.apply(ctx, [][]float32{probe}, positions)
	if err != nil {
		return err
	}
	// off is how far the angle of a pair at the i-th position is from another one.
	off := func(i, x int, angle float64) float64 {
		a, b := PairAt(*e, x)
		v := y[0][0][i]
		return math.Remainder(math.Atan2(v[b], v[a])-angle, 2*math.Pi)
	}
	finer := make([]float64, len(e.Frequencies))
	var exact, rounded float64 // squares of what each of the two leaves unexplained
	for x, omega := range e.Frequencies {
		var up, down float64 // least squares
		for i, p := range positions {
			up += float64(p) * off(i, x, float64(p)*omega)
			down += float64(p) * float64(p)
		}
		finer[x] = omega + up/down
		for i, p := range positions {
			a, b := off(i, x, float64(p)*finer[x]), off(i, x, r.angle(p, omega))
			exact, rounded = exact+a*a, rounded+b*b
		}
	}
	const visible = ir.Float32eps / 4 // about what the rounding of a cosine shows as an angle
	count := float64(len(positions) * len(finer))
	if exact >= rounded/4 || rounded < count*visible*visible { // of the squares: half
		return nil
	}
	e.ExactAngles = true
	for x, omega := range finer {
		e.Frequencies[x] = rope.Float32.Round(omega)
		if math.Abs(omega-e.Frequencies[x])*float64(last) > ir.Float32eps/4 { // more than measuring leaves
			fit.Finer = finer
		}
	}
	// Whole turns cannot be told apart: digits of a pair that turns by more than one radian may be those of 2π.
	if slices.ContainsFunc(finer, func(omega float64) bool { return math.Abs(omega) > 1+ir.Float32eps }) {
		fit.Finer = nil
	}
	return nil
}
