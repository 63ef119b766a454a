package rope

// linear is position interpolation. It divides whatever frequencies there are.
var linear = Method{
	Axis:      ScalingAxis,
	Part:      FrequencyPart,
	Name:      "linear",
	Doc:       "Position interpolation: divides every frequency, so positions of the longer context fall between trained positions. Where heads have slopes by distance (ALiBi), it divides these.",
	Formula:   "θ'_i = θ_i / factor; m'_h = m_h / factor",
	Source:    "Chen et al., Position Interpolation, arXiv:2306.15595; slopes: Al-Khateeb et al., Position Interpolation Improves ALiBi Extrapolation, arXiv:2310.13017",
	FineTuned: true,
	HF:        true,
	Params:    []Param{paramFactor, paramTheta, paramPartial},
	slopes:    true,
	apply: func(e edit) (Attention, []string, error) {
		frequencies, warnings, err := e.interpolated()
		if err != nil {
			return Attention{}, nil, err
		}
		factor, more, err := e.factor(e.Original)
		if err != nil {
			return Attention{}, nil, err
		}
		e.Encoding.Frequencies = divided(frequencies, factor)
		e.Distance.Slopes = divided(e.Distance.Slopes, factor)
		return e.Attention, append(warnings, more...), nil
	},
}

// interpolated returns the frequencies to divide; none where slopes alone are divided.
func (e edit) interpolated() (frequencies []float64, warnings []string, err error) {
	rotation := len(e.Encoding.Frequencies) > 0 || e.given(paramTheta.Name) || e.given(paramPartial.Name)
	if e.Distance.Slopes != nil && !rotation {
		return nil, nil, nil
	}
	return e.source()
}

// divided returns numbers divided by a factor, as float32; nil stays nil.
func divided(list []float64, factor float64) []float64 {
	for i := range list {
		list[i] /= factor
	}
	return toFloat32(list)
}
