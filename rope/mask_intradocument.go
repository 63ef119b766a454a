package rope

import "errors"

const readers = " A token with id −1 is a reader: it sees every key, and only readers see its own."

var intraDocument = Method{
	Axis:    MaskAxis,
	Part:    DocumentPart,
	Name:    "intra-document",
	Doc:     "Packs independent texts into one row: a token sees the keys with its own document id. Positions continue through the whole row; inside a document only distances matter." + readers,
	Formula: "key j is visible to query i if id_j = id_i or id_i = −1, and if the graph shows it",
	Source:  "Zhao et al., Analysing the Impact of Sequence Composition, arXiv:2402.13991, §2; Wang et al., AnchorAttention, arXiv:2411.13476, §3",
	apply: func(e edit) (Attention, []string, error) {
		e.Mask.Documents = IntraDocument
		return e.Attention, nil, nil
	},
}

var intraDocumentReset = Method{
	Axis:    MaskAxis,
	Part:    DocumentPart,
	Name:    "intra-document-reset",
	Doc:     "intra-document with positions that restart in each document, whatever position ids are given. Inside a document this makes no difference to rotary attention, but long rows stay at trained positions. A reader keeps its given position." + readers,
	Formula: "visible as in intra-document; position = start + number of earlier tokens of the row with the same id (from 0 in document 0), padding not counted",
	Source:  "Wang et al., AnchorAttention, arXiv:2411.13476, §3",
	Params:  []Param{paramStart},
	apply: func(e edit) (Attention, []string, error) {
		e.Mask.Documents = IntraDocument
		return e.Attention, nil, e.restart()
	},
}

var paramStart = Param{Name: "start", Kind: Whole, Default: Integer(0), Rule: atLeastZero, Doc: "position of a document's first token (document 0 starts at 0)"}

// restart makes positions begin anew in each document.
func (e *edit) restart() error {
	if !e.Distance.IsZero() {
		return errors.New("the heads' bias by distance does not go by positions, so restarting these has no effect; intra-document and anchor without restart hide the other documents")
	}
	if len(e.Bands) > 1 {
		return errors.New("positions that restart in each document cannot be combined with a position map (--positions), which uses distances between indices in the row; give mask intra-document, or anchor without restart, with which the distances inside a document are the same for STRING and ReRoPE")
	}
	if e.Cache == Raw {
		return errors.New("positions that restart in each document cannot be combined with keys that are cached un-rotated (--cache raw, length=run): these are rotated by their index in the row when they are read")
	}
	if e.Drawn.Range > 0 {
		return errors.New("positions that restart in each document cannot be combined with positions drawn at random (--positions randomized)")
	}
	e.Mask.Restart, e.Mask.Start = true, e.integer("start")
	return nil
}
