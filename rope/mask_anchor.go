package rope

import "errors"

var anchor = Method{
	Axis: MaskAxis,
	Part: DocumentPart,
	Name: "anchor",
	Doc: "Packs documents that share an anchor into one row: a token sees the keys of its own document and the keys with id 0. In models trained with an anchor, that is the row's first token (<bos>)." +
		" Positions continue through the whole row." + readers,
	Formula:   "key j is visible to query i if id_j = id_i, id_j = 0 or id_i = −1, and if the graph shows it",
	Source:    "Wang et al., AnchorAttention, arXiv:2411.13476, §3",
	FineTuned: true,
	Params: []Param{
		{Name: "restart", Kind: Switch, Default: Bool(false), Doc: "true: positions restart in each document"},
		{Name: "start", Kind: Whole, Default: Integer(1), Rule: atLeastZero, Doc: "with restart: position of a document's first token; document 0, the anchor, starts at 0"},
	},
	apply: func(e edit) (Attention, []string, error) {
		if e.given("start") && !e.isTrue("restart") {
			return Attention{}, nil, errors.New("start= needs restart=true")
		}
		var warnings []string
		if !e.Mask.Causal {
			warnings = append(warnings, "the attention is bidirectional: documents see the anchor, the anchor does not see the documents")
		}
		e.Mask.Documents = AnchorDocument
		if !e.isTrue("restart") {
			return e.Attention, warnings, nil
		}
		return e.Attention, warnings, e.restart()
	},
}
