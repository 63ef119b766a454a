package rotation

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Models of text and pictures (Qwen2-VL) give a token several positions, of time,
// height and width, and each pair of channels turns by one of them. The op knows
// one position for each token, but frequencies are changed as in any other model.

// Sectioned checks that every pair of a fit, which was measured with all positions
// of a token alike, turns by exactly one of them.
func (r *Rotator) Sectioned(ctx context.Context, fit *Matrix) error {
	e := fit.Encoding
	gain := e.EffectiveGain() * fit.Factor
	var positions []int64
	for _, p := range []int64{3, 40, 1000, 100_003} {
		if p <= fit.Limit {
			positions = append(positions, p)
		}
	}
	probe := make([]float32, r.In.Channels)
	turning := make([]int, len(e.Frequencies)) // by how many of the positions each pair turns
	for x := range e.Frequencies {
		a, _ := PairAt(e, x)
		probe[a] = 1
	}
	defer func() { r.only = 0 }()
	for r.only = 1; r.only <= r.Components; r.only++ {
		y, err := r.apply(ctx, [][]float32{probe}, positions)
		if err != nil {
			return err
		}
		for x, omega := range e.Frequencies {
			a, b := PairAt(e, x)
			turns, stands := true, true
			for i, p := range positions {
				cos, sin := y[0][0][i][a], y[0][0][i][b]
				is := func(angle float64) bool {
					allowed := gain*(8*ir.Float32eps+1.2e-7*float64(p)*math.Abs(omega)) + r.rounding(gain, gain)
					s, c := math.Sincos(angle)
					return math.Abs(cos-gain*c) <= allowed && math.Abs(sin-gain*s) <= allowed
				}
				turns, stands = turns && is(r.angle(p, omega)), stands && is(0)
			}
			switch {
			case turns && !stands:
				turning[x]++
			case !stands:
				return fmt.Errorf("pair %d turns by position %d of %d as by nothing that was expected", x, r.only, r.Components)
			}
		}
	}
	for x, n := range turning {
		if n != 1 {
			return fmt.Errorf("pair %d turns by %d of a token's %d positions; one was expected", x, n, r.Components)
		}
	}
	return nil
}
