package rope

import "fmt"

// explicit takes the frequencies as they are given.
var explicit = Method{
	Axis:    ScalingAxis,
	Part:    FrequencyPart,
	Name:    "frequencies",
	Doc:     "Any list of frequencies, for methods that are not listed here.",
	Formula: "θ'_i = inv_freq_i; gain = attention_factor",
	Source:  "the caller",
	Params: []Param{
		{Name: "inv_freq", Kind: Reals, Doc: "radians per position, one number for each pair, in the direction in which the graph rotates it (negative: the other direction); must be given"},
		{Name: "attention_factor", Kind: Real, Rule: aboveZero, Doc: "gain on the rotated channels of query and key; if not given, the graph's"},
	},
	apply: func(e edit) (Attention, []string, error) {
		if err := e.checkRotation(); err != nil {
			return Attention{}, nil, err
		}
		list := e.value("inv_freq").list
		if len(list) != len(e.Encoding.Frequencies) {
			return Attention{}, nil, fmt.Errorf("inv_freq has %d numbers for the graph's %d pairs", len(list), len(e.Encoding.Frequencies))
		}
		for i, omega := range list {
			if omega > maxFloat32 || omega < -maxFloat32 {
				return Attention{}, nil, fmt.Errorf("inv_freq has %g for pair %d, which float32 cannot hold", omega, i)
			}
		}
		e.Encoding.Frequencies = toFloat32(list)
		if e.given("attention_factor") {
			e.Encoding.Gain = e.number("attention_factor")
		}
		return e.Attention, nil, nil
	},
}
