package validate

import (
	"math"
	"slices"
)

// Measures say how well two models' logits agree on tokens that are not padding.
type Measures struct {
	Mean  float64 `json:"mean"`   // absolute difference of a logit
	KL    float64 `json:"kl"`     // mean over tokens of Σ p ln(p/q), in nats, p the original's
	MaxKL float64 `json:"kl_max"` // largest of a token
	Top1  float64 `json:"top1"`   // share of tokens after which both give the same token the most
	Top5  float64 `json:"top5"`   // mean share of the original's five first tokens among the other's
	// First is the place, in the first row that has one, of the first token whose greedy
	// successor differs; −1 where none does.
	First int `json:"first"`
}

// measure compares logits [rows, length, width]; mask is 0 for padding.
func measure(a, b []float64, mask []int64, length int) Measures {
	width := len(a) / len(mask)
	m := Measures{First: -1}
	tokens := 0.0
	for i, real := range mask {
		if real == 0 {
			continue
		}
		tokens++
		x, y := a[i*width:(i+1)*width], b[i*width:(i+1)*width]
		for j := range x {
			m.Mean += math.Abs(x[j]-y[j]) / float64(width)
		}
		kl := divergence(x, y)
		m.KL, m.MaxKL = m.KL+kl, max(m.MaxKL, kl)
		p, q := largest(x, 5), largest(y, 5)
		if p[0] == q[0] {
			m.Top1++
		} else if m.First < 0 {
			m.First = i % length
		}
		for _, t := range p {
			if slices.Contains(q, t) {
				m.Top5 += 1 / float64(len(p))
			}
		}
	}
	if tokens > 0 {
		m.Mean, m.KL, m.Top1, m.Top5 = m.Mean/tokens, m.KL/tokens, m.Top1/tokens, m.Top5/tokens
	}
	return m
}

// divergence is the Kullback-Leibler divergence of two rows of logits, never below 0.
func divergence(x, y []float64) float64 {
	sx, sy := logSum(x), logSum(y)
	sum := 0.0
	for i := range x {
		sum += math.Exp(x[i]-sx) * ((x[i] - sx) - (y[i] - sy))
	}
	return max(sum, 0)
}

func logSum(x []float64) float64 {
	top, sum := slices.Max(x), 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}

// largest are the places of the n largest numbers, the largest first; of equal ones the first.
func largest(x []float64, n int) []int {
	best := make([]int, 0, n+1)
	for i, v := range x {
		if len(best) == n && v <= x[best[n-1]] {
			continue
		}
		at := len(best)
		for at > 0 && v > x[best[at-1]] {
			at--
		}
		best = slices.Insert(best, at, i)
		best = best[:min(len(best), n)]
	}
	return best
}
