package rope

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// longRoPE divides every frequency by a number of its own, from one list or
// another, as the context asks for.
var longRoPE = Method{
	Axis: ScalingAxis,
	Part: FrequencyPart,
	Name: "longrope",
	Doc:  "LongRoPE: every pair has a factor of its own, from short_factor within the trained context and from long_factor beyond it. The context (--context) decides which, fixed for all calls, so the result does not depend on how a text is cut into calls; with length=run each call decides.",
	Formula: "θ'_i = θ_i/long_factor_i if context > L0, else θ_i/short_factor_i; " +
		"gain = √(1 + ln factor/ln L0) for factor > 1, or attention_factor",
	Source:    "Ding et al., LongRoPE, arXiv:2402.13753; keys and gain are transformers'. transformers chooses by the length of each call",
	FineTuned: true,
	HF:        true,
	ByLength:  true,
	Params: []Param{
		{Name: "short_factor", Kind: Reals, Rule: aboveZero, Doc: "one factor for each pair, within the trained context; must be given"},
		{Name: "long_factor", Kind: Reals, Rule: aboveZero, Doc: "the same beyond it; must be given"},
		paramFactor,
		paramOriginal,
		{Name: "attention_factor", Kind: Real, Rule: aboveZero, Doc: "gain on the rotated channels of query and key; if not given, from factor"},
		paramLength,
		paramTheta,
		paramPartial,
	},
	apply: applyLongRoPE,
}

func applyLongRoPE(e edit) (Attention, []string, error) {
	original, err := e.trained()
	if err != nil {
		return Attention{}, nil, err
	}
	if original < 2 {
		return Attention{}, nil, errOneToken
	}
	frequencies, warnings, err := e.source()
	if err != nil {
		return Attention{}, nil, err
	}
	if _, err := e.base(); err != nil {
		return Attention{}, nil, err
	}
	for _, key := range []string{"short_factor", "long_factor"} {
		if !e.given(key) {
			return Attention{}, nil, fmt.Errorf("give %s=, one factor for each of the graph's %d pairs", key, len(frequencies))
		}
		if n := len(e.value(key).list); n != len(frequencies) {
			return Attention{}, nil, fmt.Errorf("%s has %d numbers for the graph's %d pairs", key, n, len(frequencies))
		}
	}
	if e.Length == 0 && !e.byRun() {
		return Attention{}, nil, errors.New("whether short_factor or long_factor applies depends on the context; give it (--context), or length=run")
	}
	divided := func(key string) []float64 {
		list := slices.Clone(frequencies)
		for i, factor := range e.value(key).list {
			list[i] /= factor
		}
		return list
	}
	gain, err := e.longRoPEGain(original)
	if err != nil {
		return Attention{}, nil, err
	}
	if old := e.Encoding.EffectiveGain(); old != 1 {
		warnings = append(warnings, fmt.Sprintf("the graph already has the gain %g, which is multiplied by %g; check whether the model is scaled already", old, gain))
		gain *= old
	}
	e.Encoding.Gain = gain
	switch {
	case e.byRun():
		return e.reach(divided("short_factor"), LengthDependent{Trained: original, Long: toFloat32(divided("long_factor"))}), warnings, nil
	case e.Length > original:
		e.Encoding.Frequencies = toFloat32(divided("long_factor"))
	default:
		e.Encoding.Frequencies = toFloat32(divided("short_factor"))
	}
	return e.Attention, warnings, nil
}

// longRoPEGain returns the given gain, else the one of the factor.
func (e edit) longRoPEGain(original int64) (float64, error) {
	if e.given("attention_factor") {
		return e.number("attention_factor"), nil
	}
	factor := float64(e.Length) / float64(original)
	switch {
	case e.given("factor"):
		factor = e.number("factor")
	case e.Length == 0:
		return 0, errors.New("the gain depends on the factor; give factor=, attention_factor= or the context (--context)")
	}
	gain := 1.0
	if factor > 1 {
		gain = math.Sqrt(1 + math.Log(factor)/math.Log(float64(original)))
	}
	e.used.note(paramFactor.Name, Number(factor), FromContext)
	e.used.note("attention_factor", Number(gain), Computed)
	return gain, nil
}
