package rope

var identity = Method{
	Axis:    PositionsAxis,
	Name:    "identity",
	Doc:     "Leaves the position map as the graph has it.",
	Formula: "distance d stays d",
	Source:  "Su et al., RoFormer, arXiv:2104.09864, eq. 15",
	Neutral: true,
	apply: func(e edit) (Attention, []string, error) {
		return e.Attention, nil, nil
	},
}
