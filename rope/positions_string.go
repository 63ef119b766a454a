package rope

import (
	"errors"
	"fmt"
)

// stringMap is STRING: far keys are met at the distances that training saw
// most often. Only the far band's query position changes, so the key cache is
// the original model's.
var stringMap = Method{
	Axis:     PositionsAxis,
	Name:     "string",
	Doc:      "Shifted rotary embedding: distances of shift or more are shortened by shift − window, so distances that are rare in training do not occur.",
	Formula:  "distance d stays d if d < shift, else d − shift + window",
	Source:   "An et al., STRING, arXiv:2410.18745, eq. 4 (the authors' code counts d = shift twice in prefill; here every key counts once)",
	Measured: "SmolLM2-135M-Instruct, trained on 8K, found 4 of 5 pass keys at 16K with shift=8k, and 0 of 5 with a third of that context; the default shift was not measured",
	Params: []Param{
		{Name: "shift", Kind: Tokens, Rule: atLeastOne, Doc: "S, the first distance that is shortened; if not given, max(⌊L/3⌋, L − T + W) for a context of L tokens and a model that is trained or scaled for T tokens; T must be at least S. L/3 is the paper's value; the maximum is this program's, so that no distance of T or more occurs. If T is unknown, S is ⌊L/3⌋"},
		{Name: "window", Kind: Tokens, Default: Integer(128), Rule: atLeastZero, Doc: "W, the distance that S becomes; at most S (W = S changes nothing)"},
		{Name: "attention_factor", Kind: Real, Default: Number(1), Rule: aboveZero, Doc: "gain on the rotated channels of query and key, beside that of a scaling; the authors' code has 0.1·ln 2 + 1 = 1.0693"},
	},
	apply: applyString,
}

func applyString(e edit) (Attention, []string, error) {
	if err := e.checkMap(); err != nil {
		return Attention{}, nil, err
	}
	window := e.integer("window")
	shift, warnings, err := e.shift(window)
	if err != nil {
		return Attention{}, nil, err
	}
	e.used.note("shift", Integer(shift), FromContext)
	if factor := e.number("attention_factor"); factor != 1 {
		e.Encoding.Gain = e.Encoding.EffectiveGain() * factor
	}
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
	return e.Attention, append(warnings, e.stringWarnings(shift, window)...), nil
}

// shift returns S: the given one, else a default, which is ours and not the paper's.
//
// A query meets the distances 0 … S − 1 and W … L − 1 − S + W. The paper applies the
// method within the trained context T and takes a third of it. In a longer context L
// a third leaves distances that were never trained. They are at most T − 1 if
// L − T + W ≤ S ≤ T, and the smallest such S is nearest to the paper's third. Beyond
// 2T − W tokens there is none.
func (e edit) shift(window int64) (shift int64, warnings []string, err error) {
	if e.given("shift") {
		return e.integer("shift"), nil, nil
	}
	if e.Length == 0 {
		return 0, nil, errors.New("neither shift= nor the context is given; give shift=, or the context (--context), from which shift is computed")
	}
	if shift = e.Length / 3; shift < 1 {
		return 0, nil, fmt.Errorf("the context of %d tokens is too short for the default shift, a third of it; give shift=", e.Length)
	}
	good, longest := e.Reachable, e.Length
	if good == 0 {
		return shift, []string{fmt.Sprintf("the length that the model is trained or scaled for is unknown, so shift=%d is a third of the context and untrained distances may remain; give shift=", shift)}, nil
	}
	if own := e.Mask.Window; own > 0 && e.Mask.FirstKeys == 0 {
		if own <= good {
			return shift, nil, nil // its window hides every distance that was not trained
		}
		longest = min(longest, own)
	}
	shift = max(longest/3, longest-good+window)
	switch {
	case shift <= good:
		return shift, nil, nil
	case window >= good:
		return 0, nil, fmt.Errorf("window=%d must be below the %d tokens that the model is trained or scaled for; give a smaller one", window, good)
	}
	return 0, nil, fmt.Errorf("the model is trained or scaled for %d tokens, so with window=%d STRING reaches %d (twice as many, less the window), fewer than the %d of the context; give a smaller context, or add a scaling",
		good, window, 2*good-window, longest)
}

// stringWarnings compares with the settings that are recommended for the method.
func (e edit) stringWarnings(shift, window int64) (warnings []string) {
	switch length := e.Length; {
	case length > 0 && length <= shift:
		warnings = append(warnings, fmt.Sprintf("no effect within the context of %d tokens, because shift=%d is not smaller", length, shift))
	case length > 0 && e.given("shift") && (shift < length/7 || 2*shift > length):
		warnings = append(warnings, fmt.Sprintf("shift=%d is outside the recommended range, 1/7 to 1/2 of the context of %d tokens", shift, length))
	}
	if window < 32 {
		warnings = append(warnings, fmt.Sprintf("window=%d is below 32, the recommended minimum", window))
	}
	return warnings
}
