package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// PositionIndependent reports whether nothing between the products with weights (or
// caches) and a core's scores MatMul can tell one position from another: no table, no
// angle, no op that is not known here. Such an attention has no rotation, whatever its
// masks and biases are.
func PositionIndependent(g *graph.Graph, c Core) bool {
	independent := true
	g.Upstream(c.ScoresMatMul.Inputs, func(v string, n *onnx.Node) []string {
		switch {
		case !independent:
		case n == nil:
			// A graph input is a cache, which is concatenated, or a table of cosines, which is multiplied.
			independent = !slices.ContainsFunc(g.Consumers[v], func(r *onnx.Node) bool { return ir.Standard(r, "Mul", "Div", "MatMul") }) && !lookedUp(g, v)
		case g.WeightProduct(n), ir.Standard(n, "DynamicQuantizeLinear") && feedsWeightProducts(g, n.Outputs[0]):
		case g.IsData(v):
			var next []string
			next, independent = dataInputs(g, n)
			return next
		}
		return nil
	})
	return independent
}

// givenTable returns a graph input that is a table of factors of a core's query or key, "" where
// there is none.
func givenTable(g *graph.Graph, c Core) (table string) {
	g.Upstream(c.ScoresMatMul.Inputs, func(v string, n *onnx.Node) []string {
		switch {
		case n == nil && g.IsData(v) && lookedUp(g, v):
			table = v
		case n == nil, !g.IsData(v), g.WeightProduct(n):
		default:
			return ir.Reads(n)
		}
		return nil
	})
	return table
}

// lookedUp reports whether rows of a value are picked by position, and multiply something.
func lookedUp(g *graph.Graph, v string) bool {
	return slices.ContainsFunc(g.Consumers[v], func(n *onnx.Node) bool { return n.Inputs[0] == v && looksUp(g, n) })
}

// looksUp reports whether a node picks rows by what an integer input holds, positions say, and
// these multiply something. (Of a cache, beam search picks rows that are then concatenated.)
func looksUp(g *graph.Graph, n *onnx.Node) bool {
	if !ir.Standard(n, "Gather") || g.Classes[n.Inputs[1]] != graph.PositionClass {
		return false
	}
	values := n.Outputs
	for len(values) > 0 {
		v := values[0]
		values = values[1:]
		for _, r := range g.Consumers[v] {
			same := ir.Standard(r, "Concat") && !slices.ContainsFunc(r.Inputs, func(in string) bool { return in != v })
			switch {
			case ir.Standard(r, "Mul"):
				return true
			case same, ir.Standard(r, "Unsqueeze", "Squeeze", "Reshape", "Expand", "Transpose", "Cast", "Identity") && r.Inputs[0] == v:
				values = append(slices.Clone(values), r.Outputs...)
			}
		}
	}
	return false
}

// RotatedBefore returns a node before the boundaries that works by position, nil where
// there is none. Such a rotation is followed by something that is not linear, a norm
// for example, so that Delimit stopped after it.
func RotatedBefore(g *graph.Graph, boundaries []string) *onnx.Node {
	return turnedBetween(g, boundaries, "")
}

// turnedBetween returns a node that works by position on the way back from values to the
// products with weights, or to the value start where that is nearer; nil where there is none.
func turnedBetween(g *graph.Graph, values []string, start string) *onnx.Node {
	for _, t := range turns(g, values, start) {
		if g.Classes[t.By] > graph.ConstantClass {
			return t.Node
		}
	}
	return nil
}

// Turn is a node that multiplies hidden states by a value that tells positions apart.
type Turn struct {
	Node *onnx.Node
	By   string
}

// Turns lists what hidden states are multiplied by on the way back from values to the products
// with weights. A constant matrix is among them: it may hold the cosines of all positions.
func Turns(g *graph.Graph, values []string) []Turn { return turns(g, values, "") }

func turns(g *graph.Graph, values []string, start string) (list []Turn) {
	g.Upstream(values, func(v string, n *onnx.Node) (next []string) {
		if v == start || n == nil || !g.IsData(v) || g.WeightProduct(n) || ir.Standard(n, "DynamicQuantizeLinear") {
			return nil
		}
		if ir.Standard(n, "Cos", "Sin") { // the class of angles may be that of hidden states
			list = append(list, Turn{n, n.Inputs[0]})
			return nil
		}
		for i, in := range n.Inputs {
			switch {
			case ir.Standard(n, "Mul") && len(n.Inputs) == 2 && GivenAlone(g, in) != "" && GivenAlone(g, n.Inputs[1-i]) == "":
				list = append(list, Turn{n, in})
			case g.IsData(in):
				next = append(next, in)
			case ir.Standard(n, "Mul", "MatMul", "Einsum", "RotaryEmbedding") && i < 2 && !positionInvariant(g, in) && !oneChannel(g, in):
				list = append(list, Turn{n, in})
			}
		}
		return next
	})
	return list
}

// GivenAlone returns a float graph input that a value is made of where it is made of such inputs
// alone, without a product with weights; "" for all others.
func GivenAlone(g *graph.Graph, value string) (input string) {
	alone := g.IsData(value)
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch {
		case !alone || !g.IsData(v):
		case n == nil:
			input = v
		case g.WeightProduct(n):
			alone = false
		default:
			return ir.Reads(n)
		}
		return nil
	})
	if !alone {
		return ""
	}
	return input
}

// RotatingNode returns a node that rotates hidden states by position, nil where there is
// none: a RotaryEmbedding, or a product of hidden states with cosines or sines of
// something else.
func RotatingNode(g *graph.Graph) *onnx.Node {
	sinusoids := map[string]bool{} // values that are computed from cosines and sines
	for _, n := range g.Nodes {
		if n.OpType == "RotaryEmbedding" {
			return n
		}
		made := ir.Standard(n, "Cos", "Sin") || slices.ContainsFunc(n.Inputs, func(v string) bool { return sinusoids[v] })
		if !made {
			continue
		}
		if ir.Standard(n, "Mul") && slices.ContainsFunc(n.Inputs, g.IsData) {
			return n
		}
		for _, o := range n.Outputs {
			sinusoids[o] = !g.IsData(o) && g.Classes[o] > graph.ConstantClass
		}
	}
	return nil
}

// NonRotary describes the attention layers of a graph without any rotation.
type NonRotary struct {
	From  []string // the values from which the first layer computes query and key
	Cores []Core   // of the layers that are not a single fused op
}

// FindNonRotary describes all candidates when none of them can rotate query or key; it
// returns nil otherwise.
func FindNonRotary(g *graph.Graph, candidates []Candidate) *NonRotary {
	nonRotary := &NonRotary{}
	for _, c := range candidates {
		var from []string
		switch {
		case c.Core != nil && PositionIndependent(g, *c.Core):
			nonRotary.Cores = append(nonRotary.Cores, *c.Core)
			from = c.Core.ScoresMatMul.Inputs
		case c.Core == nil && weighted(c.Node) && c.Node.Int("do_rotary", 0) == 0:
			from = c.Node.Inputs[:1] // query and key are its products with weights
		default:
			return nil
		}
		if nonRotary.From == nil {
			nonRotary.From = from
		}
	}
	return nonRotary
}

// weighted reports whether n is a fused attention that includes the products with the
// weights of query, key and value.
func weighted(n *onnx.Node) bool {
	return n.Domain == "com.microsoft" && slices.Contains([]string{"Attention", "QAttention", "PackedAttention"}, n.OpType) && len(n.Inputs) > 0
}

// dataInputs returns the inputs of a node that are hidden states, and whether its other
// inputs are the same for every position.
func dataInputs(g *graph.Graph, n *onnx.Node) (data []string, same bool) {
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
		case ir.Standard(n, "Mul") && GivenAlone(g, v) != "": // cosines that the caller computes
			return nil, false
		case g.IsData(v):
			data = append(data, v)
		case rearranges && i > 0: // a shape, axes or indices
		case v != "" && !positionInvariant(g, v):
			return nil, false
		}
	}
	return data, true
}

// feedsWeightProducts reports whether a quantised value is read by nothing but products
// with weights. Its scale then belongs to these products.
func feedsWeightProducts(g *graph.Graph, value string) bool {
	return !slices.ContainsFunc(g.Consumers[value], func(n *onnx.Node) bool {
		return !g.WeightProduct(n) || !slices.ContainsFunc(n.Inputs, g.Weight)
	})
}

// positionInvariant reports whether a value is computed from constant numbers, constant
// vectors and sizes, such as a head's, without anything that counts. A Range over a
// size tells positions apart. So may a constant matrix: a model of static sizes has its
// angles in one.
func positionInvariant(g *graph.Graph, value string) bool {
	invariant := true
	g.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		switch {
		case g.Constants[v] != nil:
			invariant = invariant && !g.Weight(v)
		case n == nil || g.Classes[v] > graph.ShapeClass:
			invariant = false
		case ir.Standard(n, "Shape", "Size"):
		case ir.Standard(n, "Gather", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Cast", "Identity", "Sqrt", "Pow", "Mul", "Div", "Reciprocal"):
			return ir.Reads(n)
		default:
			invariant = false
		}
		return nil
	})
	return invariant
}
