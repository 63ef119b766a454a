package encoding

import "math"

// KERPLEPower is a bias of two learned numbers: −r1·|d|^r2, r1 > 0 and 0 < r2 ≤ 2. It is added to
// the product of query and key before this is divided by √size.
// (Chi et al., KERPLE, arXiv:2205.09921.)
type KERPLEPower struct {
	R1, R2 float64
}

// Bias is what the head adds at a distance.
func (k KERPLEPower) Bias(distance float64) float64 {
	return -k.R1 * math.Pow(math.Abs(distance), k.R2)
}
