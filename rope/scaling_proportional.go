package rope

import (
	"fmt"
	"maps"
)

// proportional rotates a share of the pairs and leaves the others un-rotated, with
// the frequencies that a rotation of the whole head has.
var proportional = Method{
	Axis:      ScalingAxis,
	Part:      FrequencyPart,
	Name:      "proportional",
	Doc:       "Rotates only the fastest pairs of a head. Unlike in a partial rotation, exponents and pairing are those of the whole head.",
	Formula:   "θ'_i = θ_i/factor for i < ⌊partial_rotary_factor·n/2⌋, else 0, for a rotation of the whole head (n = head size)",
	Source:    "Gemma 4 in transformers (rope_type proportional)",
	FineTuned: true,
	HF:        true,
	Params: []Param{
		{Name: "partial_rotary_factor", Kind: Real, Default: Number(1), Rule: share, Doc: "share of the head's pairs that turn"},
		{Name: "factor", Kind: Real, Default: Number(1), Rule: atLeastOne, Stretches: true, Doc: "divisor of their frequencies"},
		paramTheta,
	},
	apply: func(e edit) (Attention, []string, error) {
		if n := e.Encoding.RotaryDim(); n > 0 && n != e.HeadSize {
			return Attention{}, nil, fmt.Errorf("the graph rotates %d of a head's %d channels; the method is defined for a rotation of all", n, e.HeadSize)
		}
		turning := int(e.number("partial_rotary_factor") * float64(e.HeadSize) / 2)
		whole := e // the share is not that of the graph's channels
		whole.params = maps.Clone(e.params)
		delete(whole.params, "partial_rotary_factor")
		frequencies, warnings, err := whole.source()
		if err != nil {
			return Attention{}, nil, err
		}
		for i := range frequencies {
			if i < turning && frequencies[i] == 0 { // a larger share than the graph's
				base, err := whole.base()
				if err != nil {
					return Attention{}, nil, err
				}
				frequencies[i] = geometric(base, len(frequencies))[i]
			}
			frequencies[i] /= e.number("factor")
			if i >= turning {
				frequencies[i] = 0
			}
		}
		e.Encoding.Frequencies = toFloat32(frequencies)
		return e.Attention, warnings, nil
	},
}
