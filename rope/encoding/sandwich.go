package encoding

import "math"

// Sandwich is a bias that is the inner product of two sinusoidal encodings, times a factor:
// factor·Σ cos(d/10000^(i/pairs)), i = 0 … pairs − 1.
// (Chi et al., Dissecting Transformer Length Extrapolation, arXiv:2212.10356.)
type Sandwich struct {
	Pairs  int     // 0 means 64, half of the paper's d̄ = 128
	Factor float64 // of the head, one of SandwichFactors
}

// SandwichFactors returns the factor of each head, H/(8h) for h = 1 … H.
func SandwichFactors(heads int) []float64 {
	factors := make([]float64, heads)
	for i := range factors {
		factors[i] = float64(heads) / (8 * float64(i+1))
	}
	return factors
}

// Bias is what the head adds to the score at a distance.
func (s Sandwich) Bias(distance float64) float64 {
	sum := 0.0
	for _, omega := range s.Frequencies() {
		sum += math.Cos(distance * omega)
	}
	return s.Factor * sum
}

// Frequencies returns the angle per token of each cosine.
func (s Sandwich) Frequencies() []float64 {
	if s.Pairs == 0 {
		s.Pairs = 64
	}
	return Powers(2*s.Pairs, 10000)
}
