package rotation

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A norm behind the rotation may have weights (HunYuan). They multiply each channel of the
// rotated vector by a factor of its own, which the rotation does not commute with. At
// position 0, where nothing is rotated, the results are these factors.

// factorsBehind returns the factors that the results m of the basis vectors have at
// position 0; nil where the rotated channels share one and the others share one, which a
// gain and a scale say, or where a channel has none. Results up to least count as zero.
func factorsBehind(m [][][]response, p rope.Precision, least float64) []float64 {
	factors := make([]float64, len(m))
	groups := map[bool][]float64{} // of the channels that are rotated, and of the others
	for c := range m {
		factors[c] = m[c][0][0][c]
		turned := turns(m[c], c, least)
		groups[turned] = append(groups[turned], factors[c])
	}
	uneven := false
	for _, group := range groups {
		for _, f := range group {
			if math.Abs(f) <= 1e-4 {
				return nil
			}
			uneven = uneven || math.Abs(f-group[0]) > 4*max(p.Epsilon(), ir.Float32eps)*math.Abs(group[0])
		}
	}
	if !uneven {
		return nil
	}
	return factors
}

// divide divides the results of the basis vectors by the factors of their channels.
func divide(m [][][]response, factors []float64) {
	for in := range m {
		for p := range m[in][0] {
			for out := range m[in][0][p] {
				m[in][0][p][out] /= factors[out]
			}
		}
	}
}
