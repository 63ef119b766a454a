package evaluation

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// z is the quantile of the normal distribution for intervals of 95 %.
const z = 1.959963984540054

// wilson is the interval of 95 % for a share p of n samples that are right or wrong (Wilson, "Probable Inference,
// the Law of Succession, and Statistical Inference", 1927).
func wilson(p, n float64) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(middle-half, 0), min(middle+half, 1)
}

// group is the samples of one text.
type group struct {
	text    int
	score   float64 // the sum
	samples int
	asked   int // answers that the scores count
}

// interval is the mean score and its interval of 95 %: Wilson's, of as many samples as would vary as much if
// they were right or wrong and independent (Dean and Pagano, "Evaluating Confidence Interval Methods for Binomial
// Proportions in Clustered Surveys", 2015). The unit is the text: how much its mean score differs from that of
// the others says how much the mean of all varies, with Student's quantile since the texts are few. The number
// is at least that of the texts, since scores from 0 to 1 vary at most as right and wrong do, and at most that of
// the answers asked for. If samples are right or wrong and each has a text of its own, this is Wilson's interval.
func interval(groups []group) (score, low, high float64) {
	var sum, samples, asked float64
	for _, g := range groups {
		sum, samples, asked = sum+g.score, samples+float64(g.samples), asked+float64(g.asked)
	}
	if samples == 0 {
		return 0, 0, 1
	}
	score = sum / samples
	texts, square := float64(len(groups)), 0.0
	for _, g := range groups { // of a ratio, as texts may have different numbers of samples
		difference := g.score - score*float64(g.samples)
		square += difference * difference
	}
	effective := texts
	if spread := score * (1 - score); texts > 1 && spread > 0 {
		quantile := student(len(groups)-1) / z
		variance := texts / (texts - 1) * square / (samples * samples) * quantile * quantile
		effective = max(texts, min(spread/variance, asked)) // a variance of 0 gives +Inf
	}
	low, high = wilson(score, effective)
	return score, low, high
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
