package encoding

import (
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// RoPEBias adds a learned vector to queries and one to keys before the rotation. What the
// two vectors give with one another depends on the distance alone. A cache of keys that are not
// rotated holds them with the vector.
// (Su, RoPE with bias extrapolates better, kexue.fm/archives/9577.)
type RoPEBias struct {
	Rotation   rope.Encoding
	Query, Key []float64 // a and b, one number for each channel of a head
}

// Score is ⟨R(p)(q + a), R(s)(k + b)⟩ for a query at position p and a key at s, before the scale.
func (r RoPEBias) Score(query, key []float64, p, s int64) float64 {
	q := ref.Rotate(r.Rotation, sum(query, r.Query), float64(p))
	k := ref.Rotate(r.Rotation, sum(key, r.Key), float64(s))
	return dot(q, k)
}

func sum(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] + y[i]
	}
	return out
}

func dot(x, y []float64) (product float64) {
	for i := range x {
		product += x[i] * y[i]
	}
	return product
}
