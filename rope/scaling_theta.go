package rope

import "errors"

// theta replaces the base. Frequencies are rounded as transformers rounds them.
var theta = Method{
	Axis:      ScalingAxis,
	Part:      FrequencyPart,
	Name:      "theta",
	Doc:       "Replaces the base. Values for continued training: 1,000,000 for 32K tokens, 5,000,000 for 64K, 10,000,000 for 128K, 50,000,000 for 256K.",
	Formula:   "θ'_i = rope_theta^(−2i/n)",
	Source:    "Su et al., RoFormer, arXiv:2104.09864, eq. 15; values: AnchorAttention §4.2",
	FineTuned: true,
	Params:    []Param{paramTheta, paramPartial},
	apply: func(e edit) (Attention, []string, error) {
		if !e.given("rope_theta") {
			return Attention{}, nil, errors.New("give the new base, rope_theta=")
		}
		if err := e.checkRotation(); err != nil {
			return Attention{}, nil, err
		}
		e.Encoding.Frequencies = e.Encoding.powers(e.number("rope_theta"))
		return e.Attention, nil, nil
	},
}
