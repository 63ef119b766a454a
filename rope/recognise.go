package rope

import (
	"math"
	"slices"
)

// Recognise finds the method by which frequencies were scaled that follow no single
// base. It returns the spec that gives them when it is applied to the powers of
// base. The pairs that turn fastest or slowest show the base, as methods leave those
// unchanged or slow them alike, and the slowest pair shows the factor; the trained
// length is that of c or a power of two. What differs from every spec by more than
// float32 rounding is not recognised.
func Recognise(a Attention, c Context) (spec Spec, base float64, ok bool) {
	e := a.Encoding.WithSenses(a.Encoding.Senses())
	turning := e.Turning() // the others stand behind these (proportional)
	if turning < 4 || slices.ContainsFunc(e.Frequencies[:turning], func(w float64) bool { return !(w > 0) }) {
		return Spec{}, 0, false
	}
	if _, plain := e.Base(); plain {
		return Spec{}, 0, false
	}
	r := recogniser{e.Frequencies[:turning], len(e.Frequencies)}
	if spec, base, ok = r.linear(); ok {
		return spec, base, true
	}
	names := []string{"yarn", "llama3"}
	if e.EffectiveGain() == 1 {
		names[0] = "ntk-by-parts" // YaRN's frequencies without its gain
	}
	lengths := trainedLengths(c)
	for _, base := range r.bases(c) {
		for _, length := range lengths {
			for _, name := range names {
				spec, factor, ok := r.byFactor(name, length, base)
				if !ok {
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

// recogniser holds the frequencies for which a spec is searched.
type recogniser struct {
	turning []float64 // those of the pairs that turn
	pairs   int       // with the ones behind them that do not
}

// linear recognises a geometric series that does not begin with 1.
func (r recogniser) linear() (Spec, float64, bool) {
	last := len(r.turning) - 1
	base := nearby(math.Pow(r.turning[0]/r.turning[last], float64(r.pairs)/float64(last)))
	spec := Spec{Axis: ScalingAxis, Name: "linear", Params: map[string]Value{"factor": Number(nearby(1 / r.turning[0]))}}
	return spec, base, r.givenBy(spec, base)
}

// byFactor recognises a method that slows the slowest pair by its factor, at a
// trained length and on a base.
func (r recogniser) byFactor(name string, length int64, base float64) (spec Spec, factor float64, ok bool) {
	last := len(r.turning) - 1
	params := map[string]Value{"factor": Number(2), "original_max_position_embeddings": Integer(length)}
	if name == "llama3" {
		params["low_freq_factor"], params["high_freq_factor"] = Number(1), Number(4)
	}
	spec = Spec{ScalingAxis, name, params}
	halved := r.scaled(spec, base)
	if halved == nil {
		return spec, 0, false
	}
	// The slowest pair is slowed by 1 − ρ + ρ/factor; a factor of 2 shows ρ.
	slowest := geometric(base, r.pairs)[last]
	share := 2 * (1 - halved[last]/slowest)
	factor = nearby(share / (r.turning[last]/slowest - 1 + share))
	if !(factor > 1) {
		return spec, 0, false
	}
	params["factor"] = Number(factor)
	return spec, factor, r.givenBy(spec, base)
}

// bases are the bases that the fastest and the slowest pairs show, and that of c.
func (r recogniser) bases(c Context) []float64 {
	n := len(r.turning)
	pairs := float64(r.pairs)
	first := math.Pow(r.turning[1], -pairs)
	last := math.Pow(r.turning[n-2]/r.turning[n-1], pairs)
	bases := []float64{shortestNear(first, 2*pairs*ulp*first), shortestNear(last, 4*pairs*ulp*last)}
	if c.Theta > 0 {
		bases = append(bases, c.Theta)
	}
	return bases
}

// trainedLengths are the lengths that are tried.
func trainedLengths(c Context) []int64 {
	var lengths []int64
	if c.Original > 0 {
		lengths = append(lengths, c.Original)
	}
	for length := int64(16); length <= 1<<20; length *= 2 {
		lengths = append(lengths, length)
	}
	return lengths
}

// givenBy reports whether a spec makes these frequencies of the powers of a base.
func (r recogniser) givenBy(spec Spec, base float64) bool {
	got := r.scaled(spec, base)
	if got == nil {
		return false
	}
	for i, v := range r.turning {
		w := got[i]
		if math.Abs(w-v) > 4*ulp*w*(1+math.Abs(math.Log(w))) {
			return false
		}
	}
	return true
}

// scaled are the frequencies that a spec makes of the powers of a base, as many
// as r has, those that do not turn too; nil when it cannot.
func (r recogniser) scaled(spec Spec, base float64) []float64 {
	plain := Attention{Heads: 1, KVHeads: 1, HeadSize: 2 * r.pairs, Encoding: Encoding{Frequencies: geometric(base, r.pairs)}}
	got, _, err := spec.withBase("carried").Apply(plain, Context{Theta: base})
	if err != nil {
		return nil
	}
	return got.Encoding.Frequencies
}

// nearby is the number of the fewest digits within 2e-6 of x, relatively: some
// steps of float32 rounding.
func nearby(x float64) float64 { return shortestNear(x, 2e-6*x) }

// shortestNear returns the number within off of x that has the fewest digits.
func shortestNear(x, off float64) float64 {
	for digits := range 9 {
		if short := roundDigits(x, digits); math.Abs(short-x) <= off {
			return short
		}
	}
	return x
}
