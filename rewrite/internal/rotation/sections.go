package rotation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Models of text and pictures (Qwen2-VL) give each token several positions: time, height
// and width. Each pair of channels is rotated by one of them.

// axes finds by which of a token's positions each pair of a fit is rotated. The fit was
// measured with all of these equal; here one at a time is not 0.
func (r *Rotator) axes(ctx context.Context, fit *Matrix) ([]int, error) {
	e := fit.Encoding
	gain := e.EffectiveGain() * fit.Factor
	var positions []int64
	for _, p := range []int64{3, 40, 1000, min(fit.Limit, 100_003)} { // far enough for slow pairs
		if p <= fit.Limit {
			positions = append(positions, p)
		}
	}
	probe := make([]float32, r.In.Channels)
	axes := make([]int, len(e.Frequencies))
	matches := make([]int, len(e.Frequencies)) // how many of the positions rotate each pair
	for x := range e.Frequencies {
		a, _ := PairAt(e, x)
		probe[a] = 1
	}
	defer func() { r.only = 0 }()
	for r.only = 1; r.only <= r.Components; r.only++ {
		y, err := r.apply(ctx, [][]float32{probe}, positions)
		if err != nil {
			return nil, err
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
				axes[x] = int(r.only - 1)
			case !stays:
				return nil, fmt.Errorf("pair %d does not rotate as expected by position %d of %d", x, r.only, r.Components)
			}
		}
	}
	for x, n := range matches {
		if n != 1 && e.Frequencies[x] != 0 {
			return nil, fmt.Errorf("pair %d rotates by %d of a token's %d positions; expected one", x, n, r.Components)
		}
	}
	return axes, nil
}

// apartAsEqual compares a fit that has axes with the graph where a token's positions
// differ: each pair follows its own, whatever the others are.
func (r *Rotator) apartAsEqual(ctx context.Context, fit *Matrix) error {
	defer func() { r.apart = 0 }()
	r.apart = fit.Limit
	var positions []int64
	for p := int64(0); p < min(600, fit.Limit+1); p++ {
		positions = append(positions, p)
	}
	for _, p := range []int64{4097, 50021, 99991} {
		if p <= fit.Limit {
			positions = append(positions, p)
		}
	}
	for some := range slices.Chunk(positions, r.together()) {
		if err := r.compare(ctx, fit, some); err != nil {
			return fmt.Errorf("with positions of a token that differ, %w", err)
		}
	}
	return nil
}
