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
	dims := shared.Add("Shape", []string{binding.Query}, shared.Value("query_dims"))
	length := shared.Add("Slice", []string{dims, shared.Constant("rows_from", rows), shared.Constant("rows_to", rows+1)}, shared.Value("length"))
	length = shared.Add("Cast", []string{length}, shared.Value("length_int32"), onnx.IntAttr("to", int64(onnx.Int32)))
	last := shared.Add("Reshape", []string{binding.LengthTracked.Last, shared.Constant("flat", -1)}, shared.Value("last"))
	tokens := shared.Add("Add", []string{last, shared.Int32("one", 1)}, shared.Value("tokens"))
	past := shared.Add("Sub", []string{tokens, length}, shared.Value("before"))
	out := shared.Add("Max", []string{past, shared.Int32("zero", 0)}, shared.Value("cache_length"))
	b.Nodes, b.Constants = append(b.Nodes, shared.Nodes...), append(b.Constants, shared.Constants...)
	return out
}
