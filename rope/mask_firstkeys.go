package rope

import "fmt"

// firstKeys is StreamingLLM's mask: softmax needs somewhere to put weight that it does not want, and the first keys are
// where models learnt to put it.
var firstKeys = Method{
	Axis: MaskAxis,
	Part: WindowPart,
	Name: "first-keys",
	Doc: "A sliding window, with the first keys always visible. A model that loses its first keys fails beyond the window; with them, it can read on. " +
		"Each row has its own first keys: padding, which the graph's mask hides, is not counted.",
	Formula: "key j is visible to query i if i − j < window or fewer than count keys that are not padding come before it, and if the graph shows it",
	Source:  "Xiao et al., StreamingLLM, arXiv:2309.17453, §3.2",
	Params: []Param{
		{Name: "count", Kind: Whole, Counts: true, Default: Integer(4), Rule: atLeastOne, Doc: "how many of the first keys stay visible"},
		paramWindow,
		{Name: "positions", Kind: Word, Words: []string{"text", "cache"}, Default: Text("text"),
			Doc: "text: tokens keep their positions; cache: first keys get the positions right before the window, as in the paper. With --cache raw and --kv fixed:…,ring=true a text can then have any length"},
	},
	apply: func(e edit) (Attention, []string, error) {
		warnings, err := e.narrow()
		e.Mask.FirstKeys = max(e.Mask.FirstKeys, e.integer("count"))
		if err == nil && e.value("positions").text == "cache" {
			if err := e.checkMap(); err != nil {
				return Attention{}, nil, fmt.Errorf("positions=cache: %w", err)
			}
			e.Bands = []Band{near, {Start: e.Mask.Window, QueryScale: 1, KeyScale: 1, QueryLimit: float64(e.Mask.FirstKeys + e.Mask.Window - 1)}}
		}
		if !e.Mask.Causal {
			warnings = append(warnings, "the attention is bidirectional: the window extends to both sides, and the first keys are always visible")
		}
		if e.Mask.Bias && !e.Mask.Padding {
			warnings = append(warnings, "the model hides padding by its own bias, so padding is counted among the first keys; give rows without padding on the left")
		}
		return e.Attention, warnings, err
	},
}
