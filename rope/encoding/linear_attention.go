package encoding

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// LinearAttention is attention without a softmax, with queries and keys rotated in the sum over
// the values alone, so that what divides it stays positive:
// out_m = Σ_n ⟨R(m)φ(q_m), R(n)φ(k_n)⟩ v_n / Σ_n ⟨φ(q_m), φ(k_n)⟩, φ(x) = elu(x) + 1.
// (Su et al., RoFormer, arXiv:2104.09864, equation 19.)
type LinearAttention struct {
	Rotation rope.Encoding
	Causal   bool // token m sees tokens 0 … m; else all
}

// Run returns the output of each token. query and key have a row of channels for each, value too.
func (l LinearAttention) Run(query, key, value [][]float64) [][]float64 {
	out := make([][]float64, len(query))
	for m, q := range query {
		features := positive(q)
		turned := ref.Rotate(l.Rotation, features, float64(m))
		weighted, all := make([]float64, len(value[0])), 0.0
		for n, k := range key {
			if l.Causal && n > m {
				break
			}
			weight := dot(turned, ref.Rotate(l.Rotation, positive(k), float64(n)))
			all += dot(features, positive(k))
			for x, v := range value[n] {
				weighted[x] += weight * v
			}
		}
		for x := range weighted {
			weighted[x] /= all
		}
		out[m] = weighted
	}
	return out
}

// positive is elu(x) + 1.
func positive(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v + 1
		if v < 0 {
			out[i] = math.Exp(v)
		}
	}
	return out
}
