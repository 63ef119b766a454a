package rope

// nope turns nothing by position; a gain on the rotated channels stays.
var nope = Method{
	Axis:      ScalingAxis,
	Part:      FrequencyPart,
	Name:      "nope",
	Doc:       "No position encoding: queries and keys are not rotated, so only the mask depends on the order.",
	Formula:   "θ'_i = 0",
	Source:    "Kazemnejad et al., arXiv:2305.19466",
	FineTuned: true,
	apply: func(e edit) (Attention, []string, error) {
		if err := e.checkRotation(); err != nil {
			return Attention{}, nil, err
		}
		e.Encoding.Frequencies = make([]float64, len(e.Encoding.Frequencies))
		return e.Attention, nil, nil
	},
}
