package rope

var keep = Method{
	Axis:    MaskAxis,
	Name:    "keep",
	Doc:     "Leaves the mask as the graph has it.",
	Formula: "a query sees the keys that it saw",
	Source:  "the graph itself",
	Neutral: true,
	apply: func(e edit) (Attention, []string, error) {
		return e.Attention, nil, nil
	},
}
