package evaluation

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

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

// halfInterval is half the interval of 95 % of the mean of independent numbers, two at least: Student's, since
// their spread is only known from these few numbers themselves (Student, "The Probable Error of a Mean", 1908).
func halfInterval(list []float64) float64 {
	n, middle, square := float64(len(list)), mean(list), 0.0
	for _, x := range list {
		square += (x - middle) * (x - middle)
	}
	return student(len(list)-1) * math.Sqrt(square/(n-1)/n)
}

// student is the quantile of Student's t for intervals of 95 %: with x = ν/(ν + t²), |T| exceeds t with the
// probability I_x(ν/2, 1/2).
func student(freedom int) float64 {
	v := float64(freedom)
	x := mathext.InvRegIncBeta(v/2, 0.5, 0.05)
	return math.Sqrt(v * (1 - x) / x)
}
