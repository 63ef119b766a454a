package encoding

import "math"

// XPos is RoPE with a decay: at position p it multiplies pair i of a query by ζ_i^(p/base) and
// of a key by the inverse, ζ_i = (i/pairs + γ)/(1 + γ). The score then has ζ_i^(d/base).
// (Sun et al., A Length-Extrapolatable Transformer, arXiv:2212.10554, algorithm 1.)
type XPos struct {
	Pairs     int     // pairs of rotated channels
	Gamma     float64 // 0 means 0.4
	DecayBase float64 // tokens after which a pair has ζ_i; 0 means 512
}

// WithDefaults returns the decay with the numbers of the paper filled in.
func (x XPos) WithDefaults() XPos {
	if x.Gamma == 0 {
		x.Gamma = 0.4
	}
	if x.DecayBase == 0 {
		x.DecayBase = 512
	}
	return x
}

// Zetas returns ζ_i of each pair.
func (x XPos) Zetas() []float64 {
	zetas := make([]float64, x.Pairs)
	for i := range zetas {
		zetas[i] = x.Zeta(i)
	}
	return zetas
}

// Zeta returns ζ of one pair.
func (x XPos) Zeta(pair int) float64 {
	gamma := x.WithDefaults().Gamma
	return (float64(pair)/float64(x.Pairs) + gamma) / (1 + gamma)
}

// Factors returns what each pair of a query and of a key at a position is multiplied by. Only
// differences of positions count, so positions are taken from middle, near both: the powers of a
// far one leave the range of numbers.
func (x XPos) Factors(position, middle int64) (query, key []float64) {
	x = x.WithDefaults()
	for _, zeta := range x.Zetas() {
		exponent := float64(position-middle) / x.DecayBase
		query = append(query, math.Pow(zeta, exponent))
		key = append(key, math.Pow(zeta, -exponent))
	}
	return query, key
}

// Decay returns what a pair's part of the score is multiplied by at a distance.
func (x XPos) Decay(pair int, distance float64) float64 {
	x = x.WithDefaults()
	return math.Pow(x.Zeta(pair), distance/x.DecayBase)
}
