package rope

import (
	"errors"
	"fmt"
)

var slidingWindow = Method{
	Axis:      MaskAxis,
	Part:      WindowPart,
	Name:      "sliding-window",
	Doc:       "Shows a query only the nearest keys, in a bidirectional model on both sides. A layer with a narrower window of its own is unchanged.",
	Formula:   "distance d is visible if |d| < window (the key itself counts, as in Hugging Face's sliding_window), and if the graph shows it",
	Source:    "Beltagy et al., Longformer, arXiv:2004.05150, §3.1; Jiang et al., Mistral 7B, arXiv:2310.06825",
	FineTuned: true,
	Params:    []Param{paramWindow},
	apply: func(e edit) (Attention, []string, error) {
		warnings, err := e.narrow()
		return e.Attention, warnings, err
	},
}

var paramWindow = Param{Name: "window", Kind: Tokens, Rule: atLeastOne, Doc: "number of keys that a query sees, its own included; must be given"}

// narrow sets the mask's window, unless the graph's own is narrower.
func (e *edit) narrow() (warnings []string, err error) {
	if !e.given("window") {
		return nil, errors.New("give window=, the number of keys that a query sees")
	}
	window := e.integer("window")
	if own := e.Mask.Window; own > 0 && own < window {
		return []string{fmt.Sprintf("the layer's own window of %d keys is narrower than window=%d and stays unchanged", own, window)}, nil
	}
	if e.Length > 0 && window >= e.Length {
		warnings = append(warnings, fmt.Sprintf("no effect within the context of %d tokens, because window=%d is not smaller", e.Length, window))
	}
	e.Mask.Window = window
	return warnings, nil
}
