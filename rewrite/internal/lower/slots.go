package lower

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// slotLength computes how many tokens each row of a cache of fixed size holds before the
// call, int32 [batch]: the place of the first new token, which the model's own input tells.
// The nodes are named after it, so all sites that read it share them.
func slotLength(b *ir.Builder, binding Binding) string {
	shared := &ir.Builder{Stem: "rope_rewrite/" + binding.Slots.Input.Name}
	places := shared.AddAs("places", "Reshape", []string{shared.Int64s(binding.Slots.Input), shared.Constant("flat", -1)})
	first := shared.AddAs("first", "Slice", []string{places, shared.Constant("first_from", 0), shared.Constant("first_to", 1)})
	if binding.Slots.Consecutive {
		count := shared.NamedElement("count", shared.AddAs("places_dims", "Shape", []string{places}), 0)
		row := shared.AddAs("row", "Range", []string{shared.Scalar("from_zero", 0), count, shared.Scalar("by_one", 1)})
		same := shared.AddAs("same", "Equal", []string{places, shared.AddAs("expected", "Add", []string{first, row})})
		ones := shared.AddAs("same_number", "Cast", []string{same}, onnx.IntAttr("to", int64(onnx.Int64)))
		first = shared.Guarded(first, "the places of new tokens are not consecutive", ones)
	}
	at := int64(slices.Index(binding.QueryLayout.Axes, dim.BatchAxis))
	dims := shared.AddAs("query_dims", "Shape", []string{binding.Query})
	batch := shared.AddAs("batch", "Slice", []string{dims, shared.Constant("batch_from", at), shared.Constant("batch_to", at+1)})
	narrow := shared.AddAs("first_int32", "Cast", []string{first}, onnx.IntAttr("to", int64(onnx.Int32)))
	out := shared.AddAs("cache_length", "Expand", []string{narrow, batch})
	b.Nodes, b.Constants = append(b.Nodes, shared.Nodes...), append(b.Constants, shared.Constants...)
	return out
}
