package rope

import (
	"errors"
	"fmt"
	"math"
)

// yarn is YaRN as transformers computes it, with its keys and defaults. The
// weights of the ramp are rounded to float32 where transformers rounds them:
// 1 − (1 − ρ) loses digits that a large factor would show.
var yarn = Method{
	Axis:   ScalingAxis,
	Part:   FrequencyPart,
	Name:   "yarn",
	Doc:    "Keeps the frequencies that turn often within the trained context, interpolates those that turn less than once, blends between them, and multiplies the rotated channels by a gain.",
	Source: "Peng et al., YaRN, arXiv:2309.00071, §3.2–3.4; the ramp and the keys are transformers'",
	Formula: "θ'_i = θ_i·(1 − ρ_i) + ρ_i·θ_i/factor; " +
		"ρ_i = clamp((i − low)/(high − low), 0, 1) with low = max(⌊c(beta_fast)⌋, 0), high = min(⌈c(beta_slow)⌉, n − 1), " +
		"c(β) = n·ln(L0/(2πβ))/(2·ln θ), no rounding if truncate is false, high + 0.001 if both are equal; " +
		"gain = 0.1·ln factor + 1, or attention_factor, or (0.1·mscale·ln factor + 1)/(0.1·mscale_all_dim·ln factor + 1)",
	Measured: "SmolLM2-135M-Instruct, trained on 8K, found 5 of 5 pass keys at 16K with factor=4, and 3 of 5 with factor=2, which is what that context gives by default: leave room",
	HF:       true,
	Params: []Param{
		paramFactor,
		paramOriginal,
		{Name: "attention_factor", Kind: Real, Rule: aboveZero, Doc: "gain on the rotated channels of query and key; if not given, from mscale and mscale_all_dim or from factor"},
		paramBetaFast,
		paramBetaSlow,
		{Name: "mscale", Kind: Real, Rule: atLeastZero, Doc: "with mscale_all_dim: numerator of the gain's ratio; 0 counts as not given"},
		{Name: "mscale_all_dim", Kind: Real, Rule: atLeastZero, Doc: "with mscale: denominator of the gain's ratio; 0 counts as not given"},
		paramTruncate,
		{Name: "ramp", Kind: Word, Words: []string{"hf", "ratio"}, Default: Text("hf"),
			Doc: "hf: transformers' ramp over pairs; ratio: the blog post's ramp over turns within L0, θ_i·(γ + (1 − γ)/factor) with γ = clamp((θ_i·L0/2π − 1)/(tau − 1), 0, 1); the two differ by up to 70 % in some pairs"},
		{Name: "tau", Kind: Real, Default: Number(32), Rule: aboveOne, Doc: "with ramp=ratio: turns within L0 from which a frequency is unchanged"},
		{Name: "temperature", Kind: Real, Rule: aboveZero, Doc: "λ on the whole content score, in place of the gain (the paper's is (0.1·ln factor + 1)²)"},
		paramTheta,
		paramPartial,
	},
	apply: applyYarn,
}

func applyYarn(e edit) (Attention, []string, error) {
	frequencies, factor, warnings, err := e.yarnFrequencies()
	if err != nil {
		return Attention{}, nil, err
	}
	e.Encoding.Frequencies = frequencies

	if e.given("temperature") {
		for _, key := range []string{"attention_factor", "mscale", "mscale_all_dim"} {
			if e.given(key) {
				return Attention{}, nil, fmt.Errorf("temperature and %s both scale the score; give only one of them", key)
			}
		}
		e.Scale = e.EffectiveScale() * e.number("temperature")
		return e.Attention, warnings, nil
	}
	gain, more := e.yarnGain(factor)
	warnings = append(warnings, more...)
	if old := e.Encoding.EffectiveGain(); old != 1 {
		warnings = append(warnings, fmt.Sprintf("the graph already has the gain %g, which is multiplied by %g; check whether the model is scaled already", old, gain))
		gain *= old
	}
	e.Encoding.Gain = gain
	return e.Attention, warnings, nil
}

// yarnFrequencies returns the blended frequencies and the factor.
func (e edit) yarnFrequencies() (frequencies []float64, factor float64, warnings []string, err error) {
	original, err := e.trained()
	if err != nil {
		return nil, 0, nil, err
	}
	frequencies, warnings, err = e.source()
	if err != nil {
		return nil, 0, nil, err
	}
	factor, more, err := e.factor(original)
	if err != nil {
		return nil, 0, nil, err
	}
	warnings = append(warnings, more...)
	if e.value("ramp").text == "ratio" {
		return e.ratioRamp(frequencies, original, factor), factor, warnings, e.noPairRange()
	}
	if e.given("tau") {
		return nil, 0, nil, errors.New("tau= needs ramp=ratio")
	}
	low, high, more, err := e.pairRange(original, e.number("beta_fast"), e.number("beta_slow"), e.isTrue("truncate"))
	if err != nil {
		return nil, 0, nil, err
	}
	warnings = append(warnings, more...)
	for i, theta := range frequencies {
		keep := 1 - ramp(i, low, high)
		frequencies[i] = theta/factor*float64(1-keep) + theta*float64(keep)
	}
	return toFloat32(frequencies), factor, warnings, nil
}

// ratioRamp blends by how often a pair turns within the trained context.
func (e edit) ratioRamp(frequencies []float64, original int64, factor float64) []float64 {
	for i, theta := range frequencies {
		turns := theta * float64(original) / (2 * math.Pi)
		keep := min(max((turns-1)/(e.number("tau")-1), 0), 1)
		frequencies[i] = (keep + (1-keep)/factor) * theta
	}
	return toFloat32(frequencies)
}

// noPairRange refuses keys of the other ramp.
func (e edit) noPairRange() error {
	for _, key := range []string{"beta_fast", "beta_slow", "truncate"} {
		if e.given(key) {
			return fmt.Errorf("%s= cannot be combined with ramp=ratio, which takes tau=", key)
		}
	}
	return nil
}

// pairRange returns the pairs between which the ramp rises from 0 to 1: those
// that turn fast and slow times within the trained context.
func (e edit) pairRange(original int64, fast, slow float64, truncate bool) (low, high float64, warnings []string, err error) {
	base, err := e.base()
	if err != nil {
		return 0, 0, nil, err
	}
	if fast < slow {
		return 0, 0, nil, fmt.Errorf("beta_fast=%v must not be below beta_slow=%v", e.value("beta_fast"), e.value("beta_slow"))
	}
	n := float64(e.Encoding.RotaryDim())
	pair := func(turns float64) float64 { // that turns so often within the trained context
		return n * math.Log(float64(original)/(turns*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high = pair(fast), pair(slow)
	if truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, n-1)
	if high < low {
		warnings = append(warnings, fmt.Sprintf("with original_max_position_embeddings=%d the ramp from %g to %g turns falls outside the %g pairs", original, fast, slow, n/2))
	}
	if low == high {
		high += 0.001
	}
	return low, high, warnings, nil
}

// ramp is the share of interpolation in pair i.
func ramp(i int, low, high float64) float32 {
	return min(max((float32(i)-float32(low))/float32(high-low), 0), 1)
}

// yarnGain returns the gain, and says which given keys it does not use:
// transformers passes over them in silence.
func (e edit) yarnGain(factor float64) (gain float64, warnings []string) {
	mscale, allDim := e.number("mscale"), e.number("mscale_all_dim")
	if e.given("attention_factor") {
		if mscale != 0 || allDim != 0 {
			warnings = append(warnings, "mscale and mscale_all_dim are not used, because attention_factor is given")
		}
		return e.number("attention_factor"), warnings
	}
	gain = magnitude(factor, 1)
	switch {
	case mscale != 0 && allDim != 0:
		gain = magnitude(factor, mscale) / magnitude(factor, allDim)
	case mscale != 0 || allDim != 0:
		warnings = append(warnings, "mscale and mscale_all_dim only work together; the one that is given is not used")
	}
	e.used.note("attention_factor", Number(gain), Computed)
	return gain, warnings
}

// magnitude is the paper's √(1/t) = 0.1·ln s + 1 (§3.4) with its slope scaled.
func magnitude(factor, mscale float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*mscale*math.Log(factor) + 1
}
