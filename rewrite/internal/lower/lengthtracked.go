package lower

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// cacheLength makes the number of tokens that each row holds before the call:
//
//	max(last + 1 − length, 0)
//
// which is 0 for the padded rows of a first call. The nodes are named after
// last, so that all sites that count by it share them.
func cacheLength(b *ir.Builder, w Binding) string {
	shared := &ir.Builder{Stem: "rope_rewrite/" + w.LengthTracked.Last}
	rows := int64(slices.Index(w.QueryLayout.Axes, dim.RowAxis))
	dims := shared.Add("Shape", []string{w.Query}, shared.Value("query_dims"))
	length := shared.Add("Slice", []string{dims, shared.Constant("rows_from", rows), shared.Constant("rows_to", rows+1)}, shared.Value("length"))
	length = shared.Add("Cast", []string{length}, shared.Value("length_int32"), onnx.IntAttr("to", int64(onnx.Int32)))
	last := shared.Add("Reshape", []string{w.LengthTracked.Last, shared.Constant("flat", -1)}, shared.Value("last"))
	tokens := shared.Add("Add", []string{last, shared.Int32("one", 1)}, shared.Value("tokens"))
	past := shared.Add("Sub", []string{tokens, length}, shared.Value("before"))
	out := shared.Add("Max", []string{past, shared.Int32("zero", 0)}, shared.Value("cache_length"))
	b.Nodes, b.Constants = append(b.Nodes, shared.Nodes...), append(b.Constants, shared.Constants...)
	return out
}
