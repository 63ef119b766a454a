package rope

var none = Method{
	Axis:    ScalingAxis,
	Name:    "none",
	Doc:     "Leaves frequencies and gain as the graph has them.",
	Formula: "θ' = θ",
	Source:  "Su et al., RoFormer, arXiv:2104.09864, eq. 15",
	Neutral: true,
	Params:  []Param{paramPartial},
	apply: func(e edit) (Attention, []string, error) {
		if e.given("partial_rotary_factor") {
			if err := e.checkRotation(); err != nil {
				return Attention{}, nil, err
			}
		}
		return e.Attention, nil, nil
	},
}
