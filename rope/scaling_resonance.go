package rope

import "math"

// resonance makes every pair come back to where it was after a whole number of
// positions, so that no position of a longer context shows an unseen angle of
// a pair that has rotated fully within the trained one.
var resonance = Method{
	Axis:    ScalingAxis,
	Part:    FrequencyPart,
	Name:    "resonance",
	Doc:     "Rounds every wavelength to a whole number of positions, so fast pairs rotate only by trained angles.",
	Formula: "θ'_i = 2π / round(2π/θ_i)",
	Source:  "Wang et al., Resonance RoPE, arXiv:2403.00071, §4",
	Params:  []Param{paramTheta, paramPartial},
	apply: func(e edit) (Attention, []string, error) {
		frequencies, warnings, err := e.source()
		if err != nil {
			return Attention{}, nil, err
		}
		for i, theta := range frequencies {
			if theta != 0 {
				frequencies[i] = 2 * math.Pi / math.Round(2*math.Pi/theta)
			}
		}
		e.Encoding.Frequencies = toFloat32(frequencies)
		return e.Attention, warnings, nil
	},
}
