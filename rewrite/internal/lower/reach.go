package lower

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// byRealTokens returns the positions at of a model that takes its frequencies by the largest
// position of a call, that of padded tokens included, where the op goes by real tokens. A call
// ends where these two differ and one of them is beyond the trained length. (Padding has
// position 0, 1 or that of its row's last token in the calls of every library that is known.)
// The nodes are named after the positions, so all sites that read them share them.
func byRealTokens(b *ir.Builder, binding Binding, at string) string {
	shared := &ir.Builder{Stem: "rope_rewrite/" + binding.Position.Name}
	dims := shared.AddAs("dims", "Shape", []string{at})
	length := shared.AddAs("length", "Slice", []string{dims, shared.Constant("length_from", 1), shared.Constant("length_to", 2)})
	from := shared.AddAs("own_from", "Neg", []string{length})
	own := shared.AddAs("own_mask", "Slice", []string{binding.Mask.Name, from, shared.Constant("own_to", math.MaxInt64), shared.Constant("own_axis", 1)})
	real := shared.AddAs("real", "Cast", []string{own}, onnx.IntAttr("to", int64(onnx.Bool)))
	largest := func(part, positions string) string {
		last := shared.AddAs(part, "ReduceMax", []string{positions}, onnx.IntAttr("keepdims", 0))
		return shared.AddAs(part+"_or_trained", "Max", []string{last, shared.Scalar(part+"_trained", binding.trained-1)})
	}
	all := largest("largest", at)
	reals := largest("largest_real", shared.AddAs("real_positions", "Where", []string{real, at, shared.Scalar("none", 0)}))
	same := shared.AddAs("as_real", "Cast", []string{shared.AddAs("as_real_bool", "Equal", []string{all, reals})}, onnx.IntAttr("to", int64(onnx.Int64)))
	out := shared.Guarded(at, "a padded token has the largest position of the call, by which the model takes its frequencies", same)
	b.Nodes, b.Constants = append(b.Nodes, shared.Nodes...), append(b.Constants, shared.Constants...)
	return out
}
