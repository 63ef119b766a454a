package encoding

import "math"

// ALiBi is a bias that falls linearly with the distance: −slope·|d|, added to the scaled score.
// (Press et al., Train Short, Test Long, arXiv:2108.12409, section 3.)
type ALiBi struct {
	Slope float64
}

// Bias is what the head adds to the score of a key at a distance.
func (a ALiBi) Bias(distance float64) float64 { return -a.Slope * math.Abs(distance) }

// Slopes returns the slope of each head. For a power of two H they are 2^(−8h/H), h = 1 … H. For
// another number they are those of the next lower power H', then 2^(−4k/H') for k = 1, 3, 5 …
func Slopes(heads int) []float64 {
	power := 1
	for 2*power <= heads {
		power *= 2
	}
	slopes := make([]float64, heads)
	for i := range slopes {
		slopes[i] = math.Exp2(-8 * float64(i+1) / float64(power))
		if i >= power {
			slopes[i] = math.Exp2(-4 * float64(2*(i-power)+1) / float64(power))
		}
	}
	return slopes
}
