package rope

// linear is position interpolation. It divides whatever frequencies there are.
var linear = Method{
	Axis:      ScalingAxis,
	Name:      "linear",
	Doc:       "Position interpolation: divides every frequency, so positions of the longer context fall between trained positions.",
	Formula:   "θ'_i = θ_i / factor",
	Source:    "Chen et al., Position Interpolation, arXiv:2306.15595",
	FineTuned: true,
	HF:        true,
	Params:    []Param{paramFactor, paramTheta, paramPartial},
	apply: func(e edit) (Attention, []string, error) {
		frequencies, warnings, err := e.source()
		if err != nil {
			return Attention{}, nil, err
		}
		factor, more, err := e.factor(e.Original)
		if err != nil {
			return Attention{}, nil, err
		}
		for i := range frequencies {
			frequencies[i] /= factor
		}
		e.Encoding.Frequencies = toFloat32(frequencies)
		return e.Attention, append(warnings, more...), nil
	},
}
