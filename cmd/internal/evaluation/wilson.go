package evaluation

import "math"

// z is the quantile of the normal distribution for intervals of 95 %.
const z = 1.959963984540054

// wilson is the interval of 95 % for a share of which right of n samples were seen (Wilson,
// "Probable Inference, the Law of Succession, and Statistical Inference", 1927).
func wilson(right, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	p, m := float64(right)/float64(n), float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(middle-half, 0), min(middle+half, 1)
}
