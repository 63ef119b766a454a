package lower

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// latentKeys completes the op of latent attention. The model computes keys and values of
// all tokens together: they are split into those of cached and those of new tokens. It
// returns the nodes after the op, which take the shared channels, the model's cache, out
// of the op's present keys.
func latentKeys(b *ir.Builder, binding Binding, op *customop.RotaryAttention) []*onnx.Node {
	latent := binding.Latent
	dims := b.AddAs("past_dims", "Shape", []string{binding.PastKey})
	past := b.AddAs("past", "Slice", []string{dims, b.Constant("past_from", 2), b.Constant("past_to", 3)})
	zero, end, rows := b.Constant("first_row", 0), b.Constant("last_row", math.MaxInt64), b.Constant("rows", 2)
	split := func(value, part string) (cached, newRows string) {
		return b.AddAs(part+"_cached", "Slice", []string{value, zero, past, rows}),
			b.AddAs(part+"_fresh", "Slice", []string{value, past, end, rows})
	}
	var cached, newRows []string
	for i, v := range append([]string{binding.Key}, binding.keyParts...) {
		part := fmt.Sprintf("key_%d", i)
		v = Canonical(b, v, binding.KeyLayout.Parts[i], part)
		old := binding.PastKey
		if i != latent.Part {
			old, v = split(v, part)
		}
		cached, newRows = append(cached, old), append(newRows, v)
	}
	op.Key = Ordered(b, concatenated(b, newRows, binding.KeyLayout, "key"), binding.keyOrder, "key")
	op.PastKey = Ordered(b, concatenated(b, cached, binding.KeyLayout, "past_key"), latent.Place, "past_key")
	op.PastValue, op.Value = split(Canonical(b, binding.Value, binding.ValueLayout, "value"), "value")
	op.PresentKey = b.Value("present_key")

	shared := make([]int64, latent.Count)
	for c, from := range latent.Place {
		if i := from - latent.First; i >= 0 && i < latent.Count {
			shared[i] = int64(c)
		}
	}
	tail := &ir.Builder{Stem: b.Stem}
	from := op.PresentKey
	if heads := binding.KeyLayout.Parts[latent.Part].Heads; heads < binding.KeyLayout.Heads {
		from = tail.AddAs("present_head", "Slice", []string{from, zero, tail.Constant("one_head", 1), tail.Constant("heads", 1)})
	}
	tail.AddTo(binding.PresentKey, "Gather", []string{from, tail.Constant("shared_channels", shared...)}, onnx.IntAttr("axis", 3))
	b.Constants = append(b.Constants, tail.Constants...)
	return tail.Nodes
}
