package drift

import (
	"fmt"
	"slices"
)

// advice says what follows from what the op does in bfloat16, at the largest shift.
func advice(list []OpDrift) string {
	find := func(precision, cache string) OpDrift {
		of := slices.DeleteFunc(slices.Clone(list), func(d OpDrift) bool {
			return d.Type != "bfloat16" || d.Precision != precision || d.Cache != cache
		})
		return slices.MaxFunc(of, func(a, b OpDrift) int { return int(a.Shift - b.Shift) })
	}
	exact, fast, raw := find("exact", "rotated"), find("fast", "rotated"), find("exact", "raw")
	if exact.Shift == 0 {
		return "" // nothing was shifted
	}
	text := fmt.Sprintf("In bfloat16 a prompt drifts by %.1e with precision exact, the default, and by %.1e with fast.", exact.Prompt, fast.Prompt)
	if exact.Next <= 2*raw.Next {
		return text + " The next token drifts no more than with a cache of un-rotated keys."
	}
	return text + fmt.Sprintf(" The next token still drifts by %.1e: keys in a rotated cache are rounded at their positions, and no precision of the product corrects that. A cache of un-rotated keys does (rewrite with --cache raw): %.1e.", exact.Next, raw.Next)
}
