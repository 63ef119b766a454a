package rotation

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Models of text and pictures (Qwen2-VL) give each token several positions: time, height
// and width. Each pair of channels is rotated by one of them. The op knows one position
// for each token, but the frequencies of such a model can be changed like any other's.

// Sectioned checks that every pair of a fit is rotated by exactly one of a token's
// positions. The fit was measured with all of these equal. Measure comes first.
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
	matches := make([]int, len(e.Frequencies)) // how many of the positions rotate each pair
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
			rotates, stays := true, true
			for i, p := range positions {
				cos, sin := y[0][0][i][a], y[0][0][i][b]
				is := func(angle float64) bool {
					allowed := gain*(8*ir.Float32eps+1.2e-7*float64(p)*math.Abs(omega)) + r.rounding(gain, gain)
					s, c := math.Sincos(angle)
					return math.Abs(cos-gain*c) <= allowed && math.Abs(sin-gain*s) <= allowed
				}
				rotates, stays = rotates && is(r.angle(p, omega)), stays && is(0)
			}
			switch {
			case rotates && !stays:
				matches[x]++
			case !stays:
				return fmt.Errorf("pair %d turns by position %d of %d as by nothing that was expected", x, r.only, r.Components)
			}
		}
	}
	for x, n := range matches {
		if n != 1 {
			return fmt.Errorf("pair %d turns by %d of a token's %d positions; one was expected", x, n, r.Components)
		}
	}
	return nil
}
