package rewrite

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// still reports whether nothing between the products with weights (or caches)
// and a core's product of query and key can tell one position from another: no
// table, no angle, no op that is not known here. Such an attention has no
// rotation, whatever its masks and biases are.
func (g *graph) still(c core) bool {
	still := true
	g.upstream(c.product.Inputs, func(v string, n *onnx.Node) []string {
		switch {
		case !still:
		case n == nil:
			// A cache is joined to what is new; tables may be graph inputs too.
			still = !slices.ContainsFunc(g.consumers[v], func(r *onnx.Node) bool { return standard(r, "Mul", "Div", "MatMul") })
		case g.weightProduct(n), standard(n, "DynamicQuantizeLinear") && g.entersWeights(n.Outputs[0]):
		case g.isData(v):
			var next []string
			next, still = g.passes(n)
			return next
		}
		return nil
	})
	return still
}

// turnedBefore returns the node that works by positions on what the cuts are made
// of, nil where there is none: a rotation with something behind it that is not
// linear, such as a norm.
func (g *graph) turnedBefore(cuts []string) (by *onnx.Node) {
	g.upstream(cuts, func(v string, n *onnx.Node) (next []string) {
		if by != nil || n == nil || !g.isData(v) || g.weightProduct(n) || standard(n, "DynamicQuantizeLinear") {
			return nil
		}
		if standard(n, "Cos", "Sin") { // of angles that were taken for hidden states
			by = n
			return nil
		}
		for i, in := range n.Inputs {
			switch {
			case g.isData(in):
				next = append(next, in)
			case g.classes[in] > constantClass && standard(n, "Mul", "MatMul", "Einsum", "RotaryEmbedding") && i < 2 && !g.fixed(in) && !g.oneChannel(in):
				by = n
			}
		}
		return next
	})
	return by
}

// turning returns a node that turns hidden states by positions, nil where none
// does: it multiplies them by cosines or sines of what is no hidden state.
func (g *graph) turning() *onnx.Node {
	waves := map[string]bool{} // values made of cosines and sines
	for _, n := range g.nodes {
		if n.OpType == "RotaryEmbedding" {
			return n
		}
		made := standard(n, "Cos", "Sin") || slices.ContainsFunc(n.Inputs, func(v string) bool { return waves[v] })
		if !made {
			continue
		}
		if standard(n, "Mul") && slices.ContainsFunc(n.Inputs, g.isData) {
			return n
		}
		for _, o := range n.Outputs {
			waves[o] = !g.isData(o) && g.classes[o] > constantClass
		}
	}
	return nil
}

// unturned is attentions that turn nothing.
type unturned struct {
	from  []string // what the first of them computes query and key from
	cores []core   // of those that are not one op
}

// unturned returns all candidates when none of them can turn its query and key,
// else nil.
func (g *graph) unturned(candidates []candidate) *unturned {
	u := &unturned{}
	for _, c := range candidates {
		var from []string
		switch {
		case c.core != nil && g.still(*c.core):
			u.cores = append(u.cores, *c.core)
			from = c.core.product.Inputs
		case c.core == nil && weighted(c.node) && c.node.Int("do_rotary", 0) == 0:
			from = c.node.Inputs[:1] // query and key come straight from its weights
		default:
			return nil
		}
		if u.from == nil {
			u.from = from
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
func (g *graph) passes(n *onnx.Node) (data []string, same bool) {
	rearranges := standard(n, "Reshape", "Transpose", "Slice", "Split", "Squeeze", "Unsqueeze", "Expand", "Tile", "Gather", "Identity", "Cast", "Flatten")
	known := rearranges || standard(n, "Concat", "Mul", "Div", "Add", "Sub", "Neg", "Sqrt", "Pow", "Reciprocal", "Clip", "Min", "Max",
		"ReduceMean", "ReduceSum", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "LpNormalization",
		"DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear") ||
		n.Domain == "com.microsoft" && slices.Contains([]string{"BiasSplitGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "FusedMatMul"}, n.OpType)
	if !known {
		return nil, false
	}
	for i, v := range n.Inputs {
		switch {
		case g.isData(v):
			data = append(data, v)
		case rearranges && i > 0: // where it goes
		case v != "" && !g.fixed(v):
			return nil, false
		}
	}
	return data, true
}

// entersWeights reports whether a value is only multiplied by weights: the
// factor that a quantised one is a multiple of belongs to that product.
func (g *graph) entersWeights(value string) bool {
	return !slices.ContainsFunc(g.consumers[value], func(n *onnx.Node) bool {
		return !g.weightProduct(n) || !slices.ContainsFunc(n.Inputs, g.weight)
	})
}

// fixed reports whether a value is made of numbers and rows of them and of
// single sizes, such as a head's. A count along a size tells positions apart,
// and so may a constant matrix: a model of fixed sizes has its angles in one.
func (g *graph) fixed(value string) bool {
	fixed := true
	g.upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch {
		case g.constants[v] != nil:
			fixed = fixed && !g.weight(v)
		case n == nil || g.classes[v] > shapeClass:
			fixed = false
		case standard(n, "Shape", "Size"):
		case standard(n, "Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Cast", "Identity", "Sqrt", "Pow", "Mul", "Div", "Reciprocal"):
			return reads(n)
		default:
			fixed = false
		}
		return nil
	})
	return fixed
}
