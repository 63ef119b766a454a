package lower

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// latent gives the op keys and values of cached and of new tokens apart, and
// returns the nodes that take the model's cache out of the op's.
func latent(b *ir.Builder, w Binding, op *customop.RotaryAttention) []*onnx.Node {
	la := w.Latent
	past := b.Add("Slice", []string{b.Add("Shape", []string{w.PastKey}, b.Value("past_dims")),
		b.Constant("past_from", 2), b.Constant("past_to", 3)}, b.Value("past"))
	zero, end, rows := b.Constant("first_row", 0), b.Constant("last_row", math.MaxInt64), b.Constant("rows", 2)
	split := func(value, part string) (cached, fresh string) {
		return b.Add("Slice", []string{value, zero, past, rows}, b.Value(part+"_cached")),
			b.Add("Slice", []string{value, past, end, rows}, b.Value(part+"_fresh"))
	}
	var cached, fresh []string
	for i, v := range append([]string{w.Key}, w.keyParts...) {
		part := fmt.Sprintf("key_%d", i)
		v = Canonical(b, v, w.KeyLayout.Parts[i], part)
		old := w.PastKey
		if i != la.Part {
			old, v = split(v, part)
		}
		cached, fresh = append(cached, old), append(fresh, v)
	}
	op.Key = Ordered(b, concatenated(b, fresh, w.KeyLayout, "key"), w.keyOrder, "key")
	op.PastKey = Ordered(b, concatenated(b, cached, w.KeyLayout, "past_key"), la.Place, "past_key")
	op.PastValue, op.Value = split(Canonical(b, w.Value, w.ValLayout, "value"), "value")
	op.PresentKey = b.Value("present_key")

	shared := make([]int64, la.Count)
	for c, from := range la.Place {
		if i := from - la.First; i >= 0 && i < la.Count {
			shared[i] = int64(c)
		}
	}
	after := &ir.Builder{Stem: b.Stem}
	from := op.PresentKey
	if heads := w.KeyLayout.Parts[la.Part].Heads; heads < w.KeyLayout.Heads {
		from = after.Add("Slice", []string{from, zero, after.Constant("one_head", 1), after.Constant("heads", 1)}, b.Value("present_head"))
	}
	after.Add("Gather", []string{from, after.Constant("shared_channels", shared...)}, w.PresentKey, onnx.IntAttr("axis", 3))
	b.Constants = append(b.Constants, after.Constants...)
	return after.Nodes
}
