package rotation

import (
	"math"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Frequencies as exporters compute them, rounded to float32 at each step, seen through
// cosines in 16 bits: the base is found in spite of both roundings. 500000 with heads of
// 64 is Llama 3.2's; fast pairs are known so well there that float32 matters.
func TestPowers(t *testing.T) {
	const top = 131_072
	for _, base := range []float32{10_000, 150_000, 500_000, 1_000_000, 5_000_000, 10_000_000} {
		for _, pairs := range []int{8, 16, 32, 64, 128} {
			e := rope.Encoding{Frequencies: make([]float64, pairs), Gain: 1}
			for i := range e.Frequencies {
				power := float32(math.Pow(float64(base), float64(float32(i)/float32(pairs))))
				e.Frequencies[i] = float64(1 / power)
			}
			off := noise(e.Frequencies, rope.Float16, top)
			for i := range e.Frequencies { // no measurement hits the middle of its error
				e.Frequencies[i] += 0.9 * (off[i] - rope.Float32.Spacing(e.Frequencies[i])/2) * float64(1-2*(i%2))
			}
			got, ok := powers(e, off).Base()
			if !ok || got != float64(base) {
				t.Errorf("base %g, %d pairs: %g, %v", base, pairs, got, ok)
			}
		}
	}
}
