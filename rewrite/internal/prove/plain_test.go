package prove

import (
	"math/rand/v2"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// The errors of a plain rotation are those of rounding in float32, no less and no more,
// whatever the frequencies are.
func TestPlainRotation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, e := range []rope.Encoding{
		{Frequencies: []float64{1, 0.1, 0.01, 0.001}},
		{Frequencies: []float64{1, 0.1, 0.01, 0.001}, Gain: 1.19, Layout: rope.Interleaved},
		{Frequencies: []float64{0.7, 0.2}, Offset: 3},
	} {
		var errs ResultErrors
		largest := 0.0
		for position := range int64(200) {
			key := make([]float64, 8)
			for i := range key {
				key[i] = rng.NormFloat64()
				largest = max(largest, key[i], -key[i])
			}
			errs.rotatePlain(e, nil, func(int) int64 { return 500 * position }, key)
		}
		if unit := ir.Float32eps * largest; errs.plain < unit/8 || errs.plain > unit {
			t.Errorf("%+v: off by %.3g where a unit in the last place is %.3g", e, errs.plain, unit)
		}
	}
	var unrotated ResultErrors
	unrotated.rotatePlain(rope.Encoding{Frequencies: []float64{0}}, nil, func(int) int64 { return 7 }, []float64{0.5, -0.25})
	if unrotated.plain != 0 {
		t.Errorf("what does not turn is off by %g", unrotated.plain)
	}
}
