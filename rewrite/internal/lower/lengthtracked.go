package lower

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// cacheLength computes how many tokens each row of a length-tracked cache holds before
// the call, int32 [batch]:
//
//	max(last + 1 − length, 0)
//
// last is the index of the row's last token after the call. For a row that is padded in a
// first call the difference is below 0. The nodes are named after last, so all sites that
// read it share them.
func cacheLength(b *ir.Builder, binding Binding) string {
	shared := &ir.Builder{Stem: "rope_rewrite/" + binding.LengthTracked.Last}
	rows := int64(slices.Index(binding.QueryLayout.Axes, dim.RowAxis))
	dims := shared.AddAs("query_dims", "Shape", []string{binding.Query})
	length := shared.AddAs("length", "Slice", []string{dims, shared.Constant("rows_from", rows), shared.Constant("rows_to", rows+1)})
	length = shared.AddAs("length_int32", "Cast", []string{length}, onnx.IntAttr("to", int64(onnx.Int32)))
	last := shared.AddAs("last", "Reshape", []string{binding.LengthTracked.Last, shared.Constant("flat", -1)})
	tokens := shared.AddAs("tokens", "Add", []string{last, shared.Int32("one", 1)})
	past := shared.AddAs("before", "Sub", []string{tokens, length})
	out := shared.AddAs("cache_length", "Max", []string{past, shared.Int32("zero", 0)})
	b.Nodes, b.Constants = append(b.Nodes, shared.Nodes...), append(b.Constants, shared.Constants...)
	return out
}
