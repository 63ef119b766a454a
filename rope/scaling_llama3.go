package rope

import (
	"fmt"
	"math"
)

// llama3 is the scaling of Llama 3.1, with transformers' keys. The share of a
// blend is rounded to float32 as transformers rounds it (torch divides a number by
// a tensor as its reciprocal times the number): the difference from
// low_freq_factor loses digits.
var llama3 = Method{
	Axis:   ScalingAxis,
	Part:   FrequencyPart,
	Name:   "llama3",
	Doc:    "Keeps frequencies whose wavelength is short beside the trained context, interpolates those whose wavelength is long, and blends between them.",
	Source: "Llama 3.1 (Meta, 2024), as transformers computes it",
	Formula: "u_i = (L0·θ_i/2π − low_freq_factor)/(high_freq_factor − low_freq_factor); " +
		"θ'_i = θ_i for u ≥ 1, θ_i/factor for u ≤ 0, else (1 − u)·θ_i/factor + u·θ_i",
	HF: true,
	Params: []Param{
		paramFactor,
		paramOriginal,
		{Name: "low_freq_factor", Kind: Real, Rule: aboveZero, Doc: "wavelengths above L0/low_freq_factor are interpolated"},
		{Name: "high_freq_factor", Kind: Real, Rule: aboveZero, Doc: "wavelengths below L0/high_freq_factor are unchanged"},
		paramTheta,
		paramPartial,
	},
	apply: applyLlama3,
}

func applyLlama3(e edit) (Attention, []string, error) {
	original, err := e.trained()
	if err != nil {
		return Attention{}, nil, err
	}
	for _, key := range []string{"low_freq_factor", "high_freq_factor"} {
		if !e.given(key) {
			return Attention{}, nil, fmt.Errorf("give %s= (Llama 3.1 has low_freq_factor=1, high_freq_factor=4)", key)
		}
	}
	low, high := e.number("low_freq_factor"), e.number("high_freq_factor")
	if high <= low {
		return Attention{}, nil, fmt.Errorf("high_freq_factor=%v must be above low_freq_factor=%v", e.value("high_freq_factor"), e.value("low_freq_factor"))
	}
	frequencies, warnings, err := e.source()
	if err != nil {
		return Attention{}, nil, err
	}
	factor, more, err := e.factor(original)
	if err != nil {
		return Attention{}, nil, err
	}
	for i, theta := range frequencies {
		wavelength := 1 / float32(theta) * float32(2*math.Pi)
		turns := 1 / wavelength * float32(original) // within the trained context
		keep := float64(min(max((turns-float32(low))/float32(high-low), 0), 1))
		frequencies[i] = (1-keep)*theta/factor + keep*theta
	}
	e.Encoding.Frequencies = toFloat32(frequencies)
	return e.Attention, append(warnings, more...), nil
}
