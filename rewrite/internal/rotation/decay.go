package rotation

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
)

// decay says how a rotation also multiplies channels by powers of the position.
type decay struct{ text string }

// Error is the text.
func (d decay) Error() string { return d.text }

// decayed says in words how the rotation of m also multiplies each channel by a power of
// the position, as xPos does (Sun et al., arXiv:2212.10554); "" if it does not. powers are
// the positions of m, 0 and the powers of two.
func decayed(m [][][]response, powers []int64) string {
	// Far powers leave the range of float32, and near ones say little.
	last := min(slices.Index(powers, 64), len(powers)-1)
	if last < 0 {
		return ""
	}
	size := func(channel, place int) (norm float64) {
		for _, v := range m[channel][0][place].inOrder() {
			norm = math.Hypot(norm, v)
		}
		return norm
	}
	far := float64(powers[last])
	rates := make([]float64, len(m)) // of the logarithm, for each position
	grows := false
	for c := range m {
		start := size(c, 0)
		if !(start > 0) {
			return ""
		}
		rates[c] = math.Log(size(c, last)/start) / far
		grows = grows || math.Abs(rates[c])*far > 64*ir.Float32eps
		for place := range last {
			p := float64(powers[place])
			got := math.Log(size(c, place) / start)
			if !(math.Abs(got-rates[c]*p) <= 16*ir.Float32eps*(1+math.Abs(got))) {
				return ""
			}
		}
	}
	if !grows {
		return ""
	}
	var turned []float64
	for c, rate := range rates {
		if turns(m[c], c, 1e-4) {
			turned = append(turned, rate)
		}
	}
	if text := xPos(turned, 16*ir.Float32eps/far); text != "" {
		return text
	}
	return fmt.Sprintf("at position p each pair is also multiplied by a power, between %.6g^p and %.6g^p, which the op cannot do",
		math.Exp(slices.Min(rates)), math.Exp(slices.Max(rates)))
}

// turns says whether a channel is rotated: more than least of it comes out at another one.
func turns(from [][]response, channel int, least float64) bool {
	for _, out := range from[0] {
		for c, v := range out {
			if c != channel && math.Abs(v) > least {
				return true
			}
		}
	}
	return false
}

// xPos names the rates that xPos has: those of a pair are ln(ζ)/base (encoding.XPos),
// negative for keys. off is how far each may be off.
func xPos(rates []float64, off float64) string {
	n := len(rates) / 2
	if n < 3 || len(rates)%2 != 0 {
		return ""
	}
	rates = slices.Clone(rates)
	sign := 1.0
	if slices.Max(rates) > -slices.Min(rates) {
		sign = -1
	}
	for i := range rates {
		rates[i] *= sign
	}
	slices.Sort(rates) // the two channels of a pair have one rate, and it rises from pair to pair
	logs := func(gamma float64, pair int) float64 {
		return math.Log(encoding.XPos{Pairs: n, Gamma: gamma}.Zeta(pair))
	}
	ratio := rates[0] / rates[2*(n/2)]
	low, high := 1e-3, 1e3 // the ratio falls as gamma grows
	for range 200 {
		if middle := math.Sqrt(low * high); logs(middle, 0)/logs(middle, n/2) > ratio {
			low = middle
		} else {
			high = middle
		}
	}
	gamma := low
	base := logs(gamma, 0) / rates[0]
	for i, rate := range rates {
		if !(math.Abs(rate-logs(gamma, i/2)/base) <= off*4) {
			return ""
		}
	}
	base = math.Copysign(base, 1)
	return fmt.Sprintf("xPos: at position p each pair is also multiplied by γ^(p/%.4g), γ from %.3g to %.3g (gamma %.3g), and the keys by its inverse, which the op cannot do",
		base, math.Exp(logs(gamma, 0)), math.Exp(logs(gamma, n-1)), gamma)
}
