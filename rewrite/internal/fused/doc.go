// Package fused is what an adapter of a fused op is made of. Exporters write
// attention, or the rotation of its query and key, as one node: ONNX Attention
// and RotaryEmbedding, com.microsoft GroupQueryAttention and others. The
// rewriter reads such a node as the primitive nodes (MatMul, Softmax, Slice and
// so on) that compute the same, so that what it does with any exporter's
// spelling (find, delimit, measure, prove) serves them too.
//
// Each adapter has a folder beside this file and an entry in the table of package
// graph (adapters.go). It says which op it reads and how to expand a node of it:
//
//	func expand(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
//		b := fused.NewBuilder(n)
//		half := b.Add("Mul", []string{n.Inputs[0], b.Float(0.5, c.Type(n.Inputs[0]))})
//		b.AddTo(n.Outputs[0], "Tanh", []string{half})
//		return b.Expansion(), nil
//	}
//
// An expansion follows these rules:
//
//   - It makes every output that the node has, under the same name; all other
//     values have fresh names, which the Builder makes.
//   - Its ops are standard ones of the model's opset, or com.microsoft ones
//     that ONNX Runtime runs in float64 as well.
//   - It covers all that the node does. What it does not know (an attribute, an
//     input, a size) is an error, which refuses the node with its name. That
//     goes for values that ONNX Runtime itself would not survive, since nodes
//     are run only after they were expanded.
//   - It is never written into a model. The model keeps the node until a site
//     is proven and replaced. (A norm after a rotation is the exception: the
//     nodes of its factor per token are written before the op.)
//
// Nothing is trusted: a site is proven against the node itself as ONNX Runtime
// runs it in float32, and against the expansion run in float64, so an expansion
// that computes something else is seen.
//
// Sites are found in the expansion and measured with it. It may be simpler than
// the whole definition, as long as it has the same query, key, value, mask and
// rotation. Define, if given, returns the whole definition, the reference that
// the proof runs in float64. Its Shape nodes are evaluated, those
// of Expand are measured beforehand and fed.
package fused
