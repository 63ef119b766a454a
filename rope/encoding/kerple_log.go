package encoding

import "math"

// KERPLELog is a bias of two learned numbers: −r1·ln(1 + r2·|d|), r1, r2 > 0. It is added to the
// product of query and key before this is divided by √size.
// (Chi et al., KERPLE, arXiv:2205.09921.)
type KERPLELog struct {
	R1, R2 float64
}

// Bias is what the head adds at a distance.
func (k KERPLELog) Bias(distance float64) float64 {
	return -k.R1 * math.Log1p(k.R2*math.Abs(distance))
}
