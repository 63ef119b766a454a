package rope

import "fmt"

// firstKeys is StreamingLLM's mask: softmax needs somewhere to put weight that it does not want, and the first keys are
// where models learnt to put it.
var firstKeys = Method{
	Axis: MaskAxis,
	Name: "first-keys",
	Doc: "A sliding window beside which the first keys stay visible, so that text can run on beyond the window without the collapse that follows the loss of the first tokens. " +
		"They are each row's own: padding, which the graph's mask hides, is not counted.",
	Formula: "key j is visible to query i if i − j < window or fewer than count keys that are no padding stand before it, and if the graph shows it",
	Source:  "Xiao et al., StreamingLLM, arXiv:2309.17453, §3.2",
	Params: []Param{
		{Name: "count", Kind: Whole, Counts: true, Default: Integer(4), Rule: atLeastOne, Doc: "how many of the first keys stay visible"},
		paramWindow,
		{Name: "positions", Kind: Word, Words: []string{"text", "cache"}, Default: Text("text"),
			Doc: "text: tokens keep their positions; cache: first keys are met as if they stood right before the window, as in the paper, so that text can run on for ever"},
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
			warnings = append(warnings, "the attention is bidirectional: the window has two sides, and the first keys are visible beside both")
		}
		if e.Mask.Bias && !e.Mask.Padding {
			warnings = append(warnings, "the model's own bias hides padding, so padding counts among the first keys: give rows without padding on the left")
		}
		return e.Attention, warnings, err
	},
}
