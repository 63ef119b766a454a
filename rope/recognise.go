package rope

import (
	"math"
	"slices"
)

// Recognise tells by which method frequencies were scaled that follow no single
// base: the spec that gives them when it is applied to the powers of base. The
// pairs that turn fastest or slowest show the base, as methods leave those alone
// or slow them alike, and the slowest pair shows the factor; the trained length is that of c or a
// power of two. What differs from every spec by more than float32 rounding is
// not recognised.
func Recognise(a Attention, c Context) (spec Spec, base float64, ok bool) {
	e := a.Encoding.WithSenses(a.Encoding.Senses())
	n := len(e.Frequencies)
	if n < 4 || slices.ContainsFunc(e.Frequencies, func(w float64) bool { return !(w > 0) }) {
		return Spec{}, 0, false
	}
	if _, plain := e.Base(); plain {
		return Spec{}, 0, false
	}
	near := func(x float64) float64 { return shortestNear(x, 2e-6*x) }
	scaled := func(spec Spec, base float64) []float64 {
		plain := Attention{Heads: 1, KVHeads: 1, HeadSize: 2 * n, Encoding: Encoding{Frequencies: geometric(base, n)}}
		got, _, err := spec.withBase("carried").Apply(plain, Context{Theta: base})
		if err != nil {
			return nil
		}
		return got.Encoding.Frequencies
	}
	try := func(spec Spec, base float64) bool {
		got := scaled(spec, base)
		for i, w := range got {
			if math.Abs(w-e.Frequencies[i]) > 4*ulp*w*(1+math.Abs(math.Log(w))) {
				return false
			}
		}
		return got != nil
	}
	// Linear: a geometric series that does not begin with 1.
	pairs := float64(n)
	slope := math.Pow(e.Frequencies[0]/e.Frequencies[n-1], pairs/(pairs-1))
	spec = Spec{Axis: ScalingAxis, Name: "linear", Params: map[string]Value{"factor": Number(near(1 / e.Frequencies[0]))}}
	if base = near(slope); try(spec, base) {
		return spec, base, true
	}
	lengths := []int64{}
	if c.Original > 0 {
		lengths = append(lengths, c.Original)
	}
	for length := int64(16); length <= 1<<20; length *= 2 {
		lengths = append(lengths, length)
	}
	first := math.Pow(e.Frequencies[1], -pairs)
	last := math.Pow(e.Frequencies[n-2]/e.Frequencies[n-1], pairs)
	bases := []float64{shortestNear(first, 2*pairs*ulp*first), shortestNear(last, 4*pairs*ulp*last)}
	if c.Theta > 0 {
		bases = append(bases, c.Theta)
	}
	blend := "yarn"
	if e.EffectiveGain() == 1 {
		blend = "ntk-by-parts" // YaRN's frequencies without its gain
	}
	for _, base := range bases {
		slowest := geometric(base, n)[n-1]
		for _, length := range lengths {
			for _, name := range []string{blend, "llama3"} {
				params := map[string]Value{"factor": Number(2), "original_max_position_embeddings": Integer(length)}
				if name == "llama3" {
					params["low_freq_factor"], params["high_freq_factor"] = Number(1), Number(4)
				}
				spec = Spec{ScalingAxis, name, params}
				halved := scaled(spec, base)
				if halved == nil {
					continue
				}
				// The slowest pair is slowed by 1 − ρ + ρ/factor; a factor of 2 shows ρ.
				share := 2 * (1 - halved[n-1]/slowest)
				factor := near(share / (e.Frequencies[n-1]/slowest - 1 + share))
				if !(factor > 1) {
					continue
				}
				params["factor"] = Number(factor)
				if !try(spec, base) {
					continue
				}
				// Without a cache a gain on query and key shows as their product, in the scale.
				scale := a.EffectiveScale() / defaultScale(a.HeadSize)
				if gain := magnitude(factor, 1); name == "ntk-by-parts" && math.Abs(scale-gain*gain) < 1e-4 {
					spec.Name = "yarn"
				}
				return spec, base, true
			}
		}
	}
	return Spec{}, 0, false
}

// shortestNear returns the number within off of x that has the fewest digits.
func shortestNear(x, off float64) float64 {
	for digits := range 9 {
		if short := roundDigits(x, digits); math.Abs(short-x) <= off {
			return short
		}
	}
	return x
}
