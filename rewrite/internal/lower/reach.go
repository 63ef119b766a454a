package lower

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A model that takes its frequencies by how far a call reaches goes by all tokens, padded ones
// included, and the op by real ones. A call ends where the two would take other frequencies.
// (Padding has position 0, 1 or that of its row's last token in the calls of every library that is
// known, and without positions one row of a batch ends with a real token.)

const paddedReach = "a padded token has the largest position of the call, which decides the model's frequencies"

// byRealTokens returns the positions at of a model that has an input of them. The nodes are named
// after it, so all sites that read it share them.
func byRealTokens(b *ir.Builder, binding Binding, at string) string {
	shared := &ir.Builder{Stem: "rope_rewrite/" + binding.Position.Name}
	dims := shared.AddAs("dims", "Shape", []string{at})
	length := shared.AddAs("length", "Slice", []string{dims, shared.Constant("length_from", 1), shared.Constant("length_to", 2)})
	from := shared.AddAs("own_from", "Neg", []string{length})
	own := shared.AddAs("own_mask", "Slice", []string{binding.Mask.Name, from, shared.Constant("own_to", math.MaxInt64), shared.Constant("own_axis", 1)})
	out := shared.Guarded(at, paddedReach, reachesAlike(shared, binding, own, at))
	b.Nodes, b.Constants = append(b.Nodes, shared.Nodes...), append(b.Constants, shared.Constants...)
	return out
}

// counted is the indices of the tokens of a model without a cache, [1, length], and 1 where real
// tokens take the same frequencies as all. All sites share its nodes.
type counted struct {
	ir.Builder
	indices, alike string
}

// count writes the nodes of counted for a site.
func count(b *ir.Builder, binding Binding) *counted {
	c := &counted{Builder: ir.Builder{Stem: "rope_rewrite/counted/" + binding.Mask.Name}}
	places := c.AddAs("places", "Range", []string{c.Scalar("from_zero", 0), c.NamedSize("tokens", binding.Mask.Name, 1), c.Scalar("step", 1)})
	c.indices = c.AddAs("indices", "Reshape", []string{places, c.Constant("one_row", 1, -1)})
	c.alike = reachesAlike(&c.Builder, binding, binding.Mask.Name, c.indices)
	c.into(b)
	return c
}

// into moves what was written since the last time to the nodes of a site.
func (c *counted) into(b *ir.Builder) {
	b.Nodes, b.Constants = append(b.Nodes, c.Nodes...), append(b.Constants, c.Constants...)
	c.Nodes, c.Constants = nil, nil
}

// byRealTokens returns the positions at, which a method made, or where that is "" the indices.
func (c *counted) byRealTokens(b *ir.Builder, at string) string {
	if at != "" {
		return b.Guarded(at, paddedReach, c.alike)
	}
	defer c.into(b)
	return c.Guarded(c.indices, paddedReach, c.alike)
}

// countsPadding reports whether the model has no cache and tells by the number of its tokens how far
// a call reaches, where the op is to do so by those that a mask shows.
func (binding Binding) countsPadding(a rope.Attention) bool {
	return binding.ownLengths.Trained > 0 && binding.Position == nil && binding.PastKey == "" && binding.Mask != nil &&
		a.Encoding.LengthDependent.Trained > 0 && a.Mask.Padding
}

// reachesAlike computes 1 where real tokens take the same frequencies as all that have the
// positions at, 0 elsewhere. mask is the part of the padding mask that belongs to them.
func reachesAlike(shared *ir.Builder, binding Binding, mask, at string) string {
	real := shared.AddAs("real", "Cast", []string{mask}, onnx.IntAttr("to", int64(onnx.Bool)))
	largest := func(part, positions string) string {
		last := shared.AddAs(part, "ReduceMax", []string{positions}, onnx.IntAttr("keepdims", 0))
		last = shared.AddAs(part+"_or_trained", "Max", []string{last, shared.Scalar(part+"_trained", binding.ownLengths.Trained-1)})
		if len(binding.ownLengths.Long) == 0 {
			return last
		}
		// With two lists all that counts is which of them a call takes.
		return shared.AddAs(part+"_side", "Min", []string{last, shared.Scalar(part+"_beyond", binding.ownLengths.Trained)})
	}
	all := largest("largest", at)
	reals := largest("largest_real", shared.AddAs("real_positions", "Where", []string{real, at, shared.Scalar("none", 0)}))
	return shared.AddAs("as_real", "Cast", []string{shared.AddAs("as_real_bool", "Equal", []string{all, reals})}, onnx.IntAttr("to", int64(onnx.Int64)))
}
