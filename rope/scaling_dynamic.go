package rope

import (
	"errors"
	"fmt"
	"math"
)

// dynamic is NTK scaling by as much as the context needs.
var dynamic = Method{
	Axis:     ScalingAxis,
	Part:     FrequencyPart,
	Name:     "dynamic",
	Doc:      "NTK-aware scaling that depends on the length. The length is the context (--context), fixed for all calls, so the result does not depend on how a text is cut into calls; with length=run it is the length of each call.",
	Formula:  "θ'_i = (θ·α^(n/(n − 2)))^(−2i/n) with α = factor·max(context, L0)/L0 − (factor − 1)",
	Source:   "bloc97 and emozilla, dynamically scaled RoPE (2023); rope_type and factor are transformers', which takes max_position_embeddings for L0 and the length of each call, and does not change cached keys",
	Measured: "SmolLM2-135M-Instruct, trained on 8K, found 5 of 5 pass keys at 16K with factor=2; the default factor was not measured",
	HF:       true,
	ByLength: true,
	Params: []Param{
		{Name: "factor", Kind: Real, Default: Number(1), Rule: atLeastOne, Doc: "strength of the scaling beyond what the length needs"},
		paramOriginal,
		paramLength,
		paramTheta,
		paramPartial,
	},
	apply: func(e edit) (Attention, []string, error) {
		stretch, warnings, err := e.stretch()
		if err != nil {
			return Attention{}, nil, err
		}
		frequencies, more, err := e.source()
		if err != nil {
			return Attention{}, nil, err
		}
		warnings = append(warnings, more...)
		n := e.Encoding.RotaryDim()
		if n < 4 {
			return Attention{}, nil, errors.New("the method needs at least two channel pairs, and the graph rotates one")
		}
		factor := e.number("factor")
		if e.byRun() {
			original, _ := e.trained()
			return e.reach(frequencies, LengthDependent{Trained: original, NTK: rounded(factor)}), warnings, nil
		}
		alpha := factor*stretch - (factor - 1)
		for i := range frequencies {
			frequencies[i] *= math.Pow(alpha, -2*float64(i)/float64(n-2))
		}
		e.Encoding.Frequencies = toFloat32(frequencies)
		return e.Attention, warnings, nil
	},
}

var dynamicLinear = Method{
	Axis:     ScalingAxis,
	Part:     FrequencyPart,
	Name:     "dynamic-linear",
	Doc:      "Position interpolation that depends on the length. The length is the context (--context), fixed for all calls, or with length=run the length of each call.",
	Formula:  "θ'_i = θ_i·L0/max(context, L0)",
	Source:   "emozilla, dynamically scaled RoPE (2023); Peng et al., YaRN, arXiv:2309.00071, §3.3",
	ByLength: true,
	Params:   []Param{paramOriginal, paramLength, paramTheta, paramPartial},
	apply: func(e edit) (Attention, []string, error) {
		stretch, warnings, err := e.stretch()
		if err != nil {
			return Attention{}, nil, err
		}
		frequencies, more, err := e.source()
		if err != nil {
			return Attention{}, nil, err
		}
		warnings = append(warnings, more...)
		if e.byRun() {
			original, _ := e.trained()
			return e.reach(frequencies, LengthDependent{Trained: original, Linear: true}), warnings, nil
		}
		for i := range frequencies {
			frequencies[i] /= stretch
		}
		e.Encoding.Frequencies = toFloat32(frequencies)
		return e.Attention, warnings, nil
	},
}

var paramLength = Param{
	Name: "length", Kind: Word, Words: []string{"context", "run"}, Default: Text("context"),
	Doc: "context: the length is --context for all calls; run: it is the largest position of each call + 1, as in transformers, and a cache then holds un-rotated keys",
}

// byRun says whether the length is each call's own.
func (e edit) byRun() bool { return e.value("length").text == "run" }

// reach sets frequencies that depend on how far a call reaches. Deeper layers'
// cached keys still come from what earlier calls computed with theirs.
func (e edit) reach(frequencies []float64, r LengthDependent) Attention {
	e.Encoding.Frequencies, e.Encoding.LengthDependent, e.Cache = toFloat32(frequencies), r, Raw
	return e.Attention
}

// stretch returns max(context, L0)/L0, or nothing where the length is each
// call's own.
func (e edit) stretch() (stretch float64, warnings []string, err error) {
	original, err := e.trained()
	if err != nil || e.byRun() {
		return 0, nil, err
	}
	if e.Length == 0 {
		return 0, nil, errors.New("the frequencies depend on the length; give the context (--context), or length=run")
	}
	if e.Length <= original {
		warnings = append(warnings, fmt.Sprintf("no effect: the context of %d tokens does not exceed the trained context of %d", e.Length, original))
	}
	return float64(max(e.Length, original)) / float64(original), warnings, nil
}
