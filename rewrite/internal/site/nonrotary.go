package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// PositionIndependent reports whether nothing between the products with weights (or caches)
// and a core's product of query and key can tell one position from another: no
// table, no angle, no op that is not known here. Such an attention has no
// rotation, whatever its masks and biases are.
func PositionIndependent(g *graph.Graph, c Core) bool {
	still := true
	g.Upstream(c.ScoresMatMul.Inputs, func(v string, n *onnx.Node) []string {
		switch {
		case !still:
		case n == nil:
			// A cache is joined to what is new; tables may be graph inputs too.
			still = !slices.ContainsFunc(g.Consumers[v], func(r *onnx.Node) bool { return ir.Standard(r, "Mul", "Div", "MatMul") })
		case g.WeightProduct(n), ir.Standard(n, "DynamicQuantizeLinear") && entersWeights(g, n.Outputs[0]):
		case g.IsData(v):
			var next []string
			next, still = passes(g, n)
			return next
		}
		return nil
	})
	return still
}

// RotatedBefore returns the node that works by positions on what the cuts are made
// of, nil where there is none: a rotation with something behind it that is not
// linear, such as a norm.
func RotatedBefore(g *graph.Graph, cuts []string) (by *onnx.Node) {
	g.Upstream(cuts, func(v string, n *onnx.Node) (next []string) {
		if by != nil || n == nil || !g.IsData(v) || g.WeightProduct(n) || ir.Standard(n, "DynamicQuantizeLinear") {
			return nil
		}
		if ir.Standard(n, "Cos", "Sin") { // of angles that were taken for hidden states
			by = n
			return nil
		}
		for i, in := range n.Inputs {
			switch {
			case g.IsData(in):
				next = append(next, in)
			case g.Classes[in] > graph.ConstantClass && ir.Standard(n, "Mul", "MatMul", "Einsum", "RotaryEmbedding") && i < 2 && !positionInvariant(g, in) && !oneChannel(g, in):
				by = n
			}
		}
		return next
	})
	return by
}

// RotatingNode returns a node that turns hidden states by positions, nil where none
// does: it multiplies them by cosines or sines of what is no hidden state.
func RotatingNode(g *graph.Graph) *onnx.Node {
	waves := map[string]bool{} // values made of cosines and sines
	for _, n := range g.Nodes {
		if n.OpType == "RotaryEmbedding" {
			return n
		}
		made := ir.Standard(n, "Cos", "Sin") || slices.ContainsFunc(n.Inputs, func(v string) bool { return waves[v] })
		if !made {
			continue
		}
		if ir.Standard(n, "Mul") && slices.ContainsFunc(n.Inputs, g.IsData) {
			return n
		}
		for _, o := range n.Outputs {
			waves[o] = !g.IsData(o) && g.Classes[o] > graph.ConstantClass
		}
	}
	return nil
}

// NonRotary is attentions that turn nothing.
type NonRotary struct {
	From  []string // what the first of them computes query and key from
	Cores []Core   // of those that are not one op
}

// FindNonRotary returns all candidates when none of them can turn its query and key,
// else nil.
func FindNonRotary(g *graph.Graph, candidates []candidate) *NonRotary {
	u := &NonRotary{}
	for _, c := range candidates {
		var from []string
		switch {
		case c.Core != nil && PositionIndependent(g, *c.Core):
			u.Cores = append(u.Cores, *c.Core)
			from = c.Core.ScoresMatMul.Inputs
		case c.Core == nil && weighted(c.Node) && c.Node.Int("do_rotary", 0) == 0:
			from = c.Node.Inputs[:1] // query and key come straight from its weights
		default:
			return nil
		}
		if u.From == nil {
			u.From = from
		}
	}
	return u
}

// weighted reports whether n is an attention that multiplies by the weights of
// query, key and value itself.
func weighted(n *onnx.Node) bool {
	return n.Domain == "com.microsoft" && slices.Contains([]string{"Attention", "QAttention", "PackedAttention"}, n.OpType) && len(n.Inputs) > 0
}

// passes returns the hidden states that a node works on, and whether its other
// inputs are the same for every position.
func passes(g *graph.Graph, n *onnx.Node) (data []string, same bool) {
	rearranges := ir.Standard(n, "Reshape", "Transpose", "Slice", "Split", "Squeeze", "Unsqueeze", "Expand", "Tile", "Gather", "Identity", "Cast", "Flatten")
	known := rearranges || ir.Standard(n, "Concat", "Mul", "Div", "Add", "Sub", "Neg", "Sqrt", "Pow", "Reciprocal", "Clip", "Min", "Max",
		"ReduceMean", "ReduceSum", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "LpNormalization",
		"DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear") ||
		n.Domain == "com.microsoft" && slices.Contains([]string{"BiasSplitGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "FusedMatMul"}, n.OpType)
	if !known {
		return nil, false
	}
	for i, v := range n.Inputs {
		switch {
		case g.IsData(v):
			data = append(data, v)
		case rearranges && i > 0: // where it goes
		case v != "" && !positionInvariant(g, v):
			return nil, false
		}
	}
	return data, true
}

// entersWeights reports whether a value is only multiplied by weights: the
// factor that a quantised one is a multiple of belongs to that product.
func entersWeights(g *graph.Graph, value string) bool {
	return !slices.ContainsFunc(g.Consumers[value], func(n *onnx.Node) bool {
		return !g.WeightProduct(n) || !slices.ContainsFunc(n.Inputs, g.Weight)
	})
}

// positionInvariant reports whether a value is made of numbers and rows of them and of
// single sizes, such as a head's. A count along a size tells positions apart,
// and so may a constant matrix: a model of fixed sizes has its angles in one.
func positionInvariant(g *graph.Graph, value string) bool {
	fixed := true
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch {
		case g.Constants[v] != nil:
			fixed = fixed && !g.Weight(v)
		case n == nil || g.Classes[v] > graph.ShapeClass:
			fixed = false
		case ir.Standard(n, "Shape", "Size"):
		case ir.Standard(n, "Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Cast", "Identity", "Sqrt", "Pow", "Mul", "Div", "Reciprocal"):
			return ir.Reads(n)
		default:
			fixed = false
		}
		return nil
	})
	return fixed
}
