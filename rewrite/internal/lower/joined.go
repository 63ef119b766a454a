package lower

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// joined brings a branch into [batch, heads, length, channels]; the channels of
// several values come side by side.
func joined(b *ir.Builder, value string, beside []string, ly dim.Layout, part string) string {
	if ly.Parts == nil {
		return Canonical(b, value, ly, part)
	}
	list := make([]string, len(ly.Parts))
	for i, v := range append([]string{value}, beside...) {
		list[i] = Canonical(b, v, ly.Parts[i], fmt.Sprintf("%s_%d", part, i))
	}
	return concatenated(b, list, ly, part)
}

// concatenated joins the channels of values in canonical form; what all heads
// share is repeated.
func concatenated(b *ir.Builder, values []string, ly dim.Layout, part string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v
		if ly.Parts[i].Heads < ly.Heads {
			name := fmt.Sprintf("%s_%d", part, i)
			list[i] = b.Add("Tile", []string{v, b.Constant(name+"_repeats", 1, ly.Heads, 1, 1)}, b.Value(name+"_heads"))
		}
	}
	return b.Add("Concat", list, b.Value(part+"_joined"), onnx.IntAttr("axis", 3))
}
