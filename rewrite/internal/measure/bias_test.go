package measure_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// biases are what a graph in float32 adds to the scores of 4 heads at 24 tokens.
func biases(causal bool, f func(head int, distance float32) float32) []float64 {
	const heads, length = 4, 24
	var out []float64
	for h := range heads {
		for i := range length {
			for j := range length {
				v := float64(f(h, float32(i-j)))
				if causal && j > i {
					v = math.Inf(-1)
				}
				out = append(out, v)
			}
		}
	}
	return out
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

func log(x float32) float32 { return float32(math.Log(float64(x))) }

func pow(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) }

// sandwich is Σ sin·sin + cos·cos of sinusoidal positions in float32, for a query at 23.
func sandwich(pairs int, d float32) (sum float32) {
	for i := range pairs {
		omega := pow(10000, -float32(i)/float32(pairs))
		sinQ, cosQ := math.Sincos(float64(23 * omega))
		sinK, cosK := math.Sincos(float64((23 - d) * omega))
		sum += float32(sinQ)*float32(sinK) + float32(cosQ)*float32(cosK)
	}
	return sum
}

// t5 is the bucket of a distance, as transformers computes it.
func t5(d float32, both bool) int {
	buckets, offset := 32, 0
	if both {
		buckets = 16
		if d < 0 {
			offset = 16
		}
	}
	exact := float32(buckets / 2)
	x := abs(d)
	if x < exact {
		return offset + int(x)
	}
	return offset + min(buckets-1, int(exact)+int(log(x/exact)/log(128/exact)*(float32(buckets)-exact)))
}

// Closed forms are named with their numbers, what is only near to one is not.
func TestClosedForms(t *testing.T) {
	r1, r2 := []float32{0.5, 1.25, 2, 0.03}, []float32{0.1, 3, 0.004, 20}
	power := []float32{0.3, 1.7, 2, 0.9}
	learned := func(h, bucket int) float32 { return float32(math.Sin(float64(7*h + 3*bucket))) }
	kerple := func(h int, d float32) float32 { return -r1[h] * log(1+r2[h]*abs(d)) }
	table := "relative biases on the scores, a table of "
	for _, c := range []struct {
		name, want string
		causal     bool
		f          func(h int, d float32) float32
	}{
		{"log", "KERPLE biases on the scores, −r1·ln(1 + r2·distance) with r1 0.03 to 2 and r2 0.004 to 20", true, kerple},
		{"log, both ways", "KERPLE biases on the scores, −r1·ln(1 + r2·distance) with r1 0.03 to 2 and r2 0.004 to 20", false, kerple},
		{"log inside a scale", "KERPLE biases on the scores, −r1·ln(1 + r2·distance) with r1 0.0075 to 0.5", true, func(h int, d float32) float32 { return kerple(h, d) / 4 }},
		{"log and a constant", "KERPLE biases on the scores, −r1·ln(1 + r2·distance) with r1 0.03 to 2", true, func(h int, d float32) float32 { return 5 + kerple(h, d) }},
		{"power", "KERPLE biases on the scores, −r1·distance^r2 with r1 0.03 to 2 and r2 0.3 to 2", true, func(h int, d float32) float32 { return -r1[h] * pow(abs(d), power[h]) }},
		{"sandwich", "Sandwich biases on the scores, sums of 64 cosines of the distance with factor 0.125 to 0.5", true, func(h int, d float32) float32 { return sandwich(64, d) / (8 * float32(h+1) / 4) }},
		{"buckets", "relative biases on the scores, learned for 32 buckets of distances in one direction as in T5: 16 distances each by itself, then ranges that widen", true, func(h int, d float32) float32 { return learned(h, t5(d, false)) }},
		{"buckets, both ways", "relative biases on the scores, learned for 32 buckets of distances in both directions as in T5: 8 distances each by itself", false, func(h int, d float32) float32 { return learned(h, t5(d, true)) }},
		{"slopes", "ALiBi (scores fall linearly with the distance, by 0.00391 to 0.25 per token: the slopes of 4 heads)", true, func(h int, d float32) float32 { return -abs(d) * pow(4, -float32(h+1)) }},
		{"slopes inside a scale", "ALiBi (scores fall linearly with the distance, by 0.000488 to 0.0312 per token: the slopes of 4 heads, times 0.125)", true, func(h int, d float32) float32 { return -abs(d) * pow(4, -float32(h+1)) / 8 }},
		{"slopes, one head not", "ALiBi (scores fall linearly with the distance, by 0.00387 to 0.25 per token)", true, func(h int, d float32) float32 {
			return -abs(d) * []float32{0.25, 0.0625, 0.015625, 0.00387}[h]
		}},

		{"another logarithm", table + "24", true, func(h int, d float32) float32 { return -r1[h] * log(1+r2[h]*abs(d)*(1+1e-3*abs(d))) }},
		{"log, a little off", table + "24", true, func(h int, d float32) float32 { return kerple(h, d) * (1 + 2e-5*float32(math.Sin(float64(d)))) }},
		{"log in half precision", table + "24", true, func(h int, d float32) float32 { return float32(math.Round(float64(kerple(h, d))*4096) / 4096) }},
		{"log, one head not", table + "24", true, func(h int, d float32) float32 {
			if h == 3 {
				return float32(-math.Sqrt(float64(1 + d)))
			}
			return kerple(h, d)
		}},
		{"log, not the same both ways", table + "47", false, func(h int, d float32) float32 {
			if d < 0 {
				return kerple(h, 2*d)
			}
			return kerple(h, d)
		}},
		{"root of a sum", table + "24", true, func(h int, d float32) float32 { return -r1[h] * pow(abs(d)+0.01, 0.5) }},
		{"power above two", table + "24", true, func(h int, d float32) float32 { return -r1[h] * pow(abs(d), 2.5) }},
		{"rising log", table + "24", true, func(h int, d float32) float32 { return -kerple(h, d) }},
		{"sandwich of another base", table + "24", true, func(h int, d float32) float32 {
			var sum float64
			for i := range 64 {
				sum += math.Cos(float64(d) * math.Pow(9000, -float64(i)/64))
			}
			return float32(sum)
		}},
		{"buckets, one way other ones", table + "47", false, func(h int, d float32) float32 {
			if d < 0 {
				return learned(h, 99-int(d)/2)
			}
			return learned(h, t5(d, true))
		}},
		{"buckets, a head not", table + "24", true, func(h int, d float32) float32 {
			if h == 2 {
				return learned(h, int(d))
			}
			return learned(h, t5(d, false))
		}},
		{"a table", table + "24", true, func(h int, d float32) float32 { return learned(h, int(d)) }},
		{"a table to 16", table + "24", true, func(h int, d float32) float32 { return learned(h, min(int(d), 16)) }},
		{"other buckets", table + "24", true, func(h int, d float32) float32 { return learned(h, int(d)/2) }},
	} {
		if got := measure.NameBias(biases(c.causal, c.f), 24, 24); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, %q was expected", c.name, got, c.want)
		}
	}
}

// A cross-attention may have fewer keys than queries, or none: that is no distance.
func TestNameBiasOfCrossAttention(t *testing.T) {
	for _, total := range []int64{0, 12} {
		if got := measure.NameBias(make([]float64, 4*24*total), 24, total); got != "" {
			t.Errorf("%d keys: %q", total, got)
		}
	}
}

// TestNameDistance: a bias by distance is named as the biases that it gives are.
func TestNameDistance(t *testing.T) {
	both := rope.Distance{Starts: []int64{-1, 0, 1, 2, 3, 5, 7}, Biases: make([][]float64, 7)}
	for b := range both.Biases {
		both.Biases[b] = []float64{float64(b * b)}
	}
	kerple := rope.Distance{}
	for d := range int64(40) {
		kerple.Starts = append(kerple.Starts, d)
		kerple.Biases = append(kerple.Biases, []float64{float64(float32(-0.5 * math.Log(1+0.25*float64(d))))})
	}
	for want, d := range map[string]rope.Distance{
		"": {},
		"ALiBi (scores fall linearly with the distance, by 0.00391 to 0.0625 per token: the slopes of 2 heads)":                                           {Slopes: []float64{0.0625, 0.00390625}},
		"ALiBi (scores fall linearly with the distance, by 0.1 to 0.1 per token), counted in tokens that are not padding":                                 {Slopes: []float64{0.1}, Shown: true},
		"KERPLE biases on the scores, −r1·ln(1 + r2·distance) with r1 0.5 and r2 0.25":                                                                    kerple,
		"relative biases on the scores, in 7 ranges of distances":                                                                                         both,
		"relative biases on the scores, learned for 4 buckets of distances in one direction as in T5: 2 distances each by itself, then ranges that widen": {Starts: []int64{0, 1, 2, 4}, Biases: [][]float64{{1}, {2}, {3}, {4}}},
		"relative biases on the scores, learned for 8 buckets of distances in both directions as in T5: 2 distances each by itself, then ranges that widen": {
			Starts: []int64{-4, -3, -1, 0, 1, 2, 4}, Biases: [][]float64{{8}, {7}, {6}, {1}, {2}, {3}, {4}}},
	} {
		if got := measure.NameDistance(d); got != want {
			t.Errorf("%+v is named %q, %q was expected", d, got, want)
		}
	}
}
