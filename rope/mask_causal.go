package rope

var causal = Method{
	Axis:      MaskAxis,
	Part:      DirectionPart,
	Name:      "causal",
	Doc:       "Hides the keys that come after the query: a bidirectional model then reads only from left to right.",
	Formula:   "key j is visible to query i if j ≤ i, and if the graph shows it",
	Source:    "Vaswani et al., Attention Is All You Need, arXiv:1706.03762, §3.2.3",
	FineTuned: true,
	apply: func(e edit) (Attention, []string, error) {
		if e.Mask.Causal {
			return e.Attention, []string{"the attention is causal already; nothing changes"}, nil
		}
		e.Mask.Causal = true
		return e.Attention, nil, nil
	},
}
