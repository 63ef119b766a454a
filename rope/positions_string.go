package rope

import (
	"errors"
	"fmt"
)

// stringMap is STRING: far keys are met at the distances that training saw
// most often. Only the far band's query position changes, so the key cache is
// the original model's.
var stringMap = Method{
	Axis:    PositionsAxis,
	Name:    "string",
	Doc:     "Shifted rotary embedding: keys at least shift away are met at a distance shortened by shift − window, so that the distances seldom seen in training are not used.",
	Formula: "distance d stays d if d < shift, else d − shift + window",
	Source:  "An et al., STRING, arXiv:2410.18745, eq. 4 (the authors' code counts d = shift twice in prefill; here every key counts once)",
	Params: []Param{
		{Name: "shift", Kind: Tokens, Rule: atLeastOne, Doc: "S, the first distance that is shortened; if not given, a third of the context"},
		{Name: "window", Kind: Tokens, Default: Integer(128), Rule: atLeastZero, Doc: "W, the distance that S becomes; at most S, and S means no change"},
		{Name: "attention_factor", Kind: Real, Default: Number(1), Rule: aboveZero, Doc: "gain on the rotated channels of query and key, beside that of a scaling; the authors' code has 0.1·ln 2 + 1 = 1.0693"},
	},
	apply: applyString,
}

func applyString(e edit) (Attention, []string, error) {
	if err := e.checkMap(); err != nil {
		return Attention{}, nil, err
	}
	if !e.given("shift") && e.Length == 0 {
		return Attention{}, nil, errors.New("neither shift= nor the context is given; give shift=, or the context (--context), of which shift is a third")
	}
	shift := e.Length / 3
	if e.given("shift") {
		shift = e.integer("shift")
	}
	e.used.note("shift", Integer(shift), FromContext)
	if shift < 1 {
		return Attention{}, nil, fmt.Errorf("a context of %d tokens is too short to take a third of; give shift=", e.Length)
	}
	if factor := e.number("attention_factor"); factor != 1 {
		e.Encoding.Gain = e.Encoding.EffectiveGain() * factor
	}
	window := e.integer("window")
	if window > shift {
		return Attention{}, nil, fmt.Errorf("window=%d must not exceed shift=%d", window, shift)
	}
	if window == shift {
		return e.Attention, []string{fmt.Sprintf("window=%d equals shift, which changes no distance", window)}, nil
	}
	if warnings := e.hides(shift, "shift"); warnings != nil {
		return e.Attention, warnings, nil
	}
	e.Bands = []Band{
		near,
		{Start: shift, QueryScale: 1, QueryOffset: float64(window - shift), KeyScale: 1},
	}
	return e.Attention, stringWarnings(e.Length, shift, window), nil
}

// stringWarnings compares with the settings that are recommended for the method.
func stringWarnings(length, shift, window int64) (warnings []string) {
	switch {
	case length > 0 && length <= shift:
		warnings = append(warnings, fmt.Sprintf("no effect within the context of %d tokens: shift=%d is not below it", length, shift))
	case length > 0 && (7*shift < length || 2*shift > length):
		warnings = append(warnings, fmt.Sprintf("shift=%d lies outside 1/7 to 1/2 of the context %d, the recommended range", shift, length))
	}
	if window < 32 {
		warnings = append(warnings, fmt.Sprintf("window=%d is below 32, the recommended least", window))
	}
	return warnings
}
