package graph

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// unknown is a rank, length or width that the graph does not tell.
const unknown = -1

// Rank returns the number of a value's dimensions, and whether the graph tells it.
func (g *Graph) Rank(value string) (int, bool) { return newShapeHints(g).rank(value) }

// rank returns the number of a value's dimensions, and whether it is known.
func (h *shapeHints) rank(value string) (int, bool) {
	r := h.rankOf(value)
	return r, r != unknown
}

// rankOf returns the number of a value's dimensions, or unknown.
func (h *shapeHints) rankOf(value string) int {
	if t := h.graph.Constants[value]; t != nil {
		return len(t.Dims)
	}
	if list := ChosenConstants(h.graph.Producer[value], value); list != nil {
		if len(list[0].Dims) != len(list[1].Dims) {
			return unknown
		}
		return len(list[0].Dims)
	}
	if v := h.declared[value]; v != nil && v.HasShape {
		return len(v.Shape)
	}
	if r, done := h.ranks[value]; done {
		return r
	}
	r := unknown
	if n := h.graph.Producer[value]; n != nil && len(n.Inputs) > 0 {
		r = h.outputRank(n, value)
	}
	h.ranks[value] = r
	return r
}

// outputRank returns the rank of n's output value as it follows from its inputs.
func (h *shapeHints) outputRank(n *onnx.Node, value string) int {
	first := n.Inputs[0]
	// plus returns base + sign · by, unknown where either is.
	plus := func(base, sign, by int) int {
		if base == unknown || by == unknown {
			return unknown
		}
		return max(base+sign*by, 0)
	}
	switch {
	case ir.Standard(n, "Transpose") && n.Ints("perm") != nil:
		return len(n.Ints("perm"))
	case ir.Standard(n, "Reshape") && len(n.Inputs) == 2:
		return h.length(n.Inputs[1])
	case ir.Standard(n, "Expand") && len(n.Inputs) == 2:
		return h.broadcast(h.rankOf(first), h.length(n.Inputs[1]))
	case ir.Standard(n, "ConstantOfShape"):
		return h.length(first)
	case ir.Standard(n, "Shape", "Range"):
		return 1
	case ir.Standard(n, "Attention"):
		return h.attentionRank(n, value)
	case ir.Standard(n, "Unsqueeze"):
		return plus(h.rankOf(first), 1, h.axes(n))
	case ir.Standard(n, "Squeeze"):
		return plus(h.rankOf(first), -1, h.axes(n))
	case ir.Standard(n, "Gather") && len(n.Inputs) == 2:
		return plus(plus(h.rankOf(first), 1, h.rankOf(n.Inputs[1])), -1, 1)
	case ir.Standard(n, "MatMul", "Add", "Sub", "Mul", "Div", "Min", "Max", "Where", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or"),
		n.Domain == "com.microsoft" && n.OpType == "FusedMatMul":
		r := 0
		for _, v := range n.Inputs {
			r = h.broadcast(r, h.rankOf(v))
		}
		return r
	case ir.Standard(n, "Concat", "Slice", "Split", "Identity", "Cast", "Neg", "Not", "Softmax", "Transpose", "Pad", "Tile", "Cos", "Sin", "Sqrt", "Log", "Exp", "Floor", "Clip", "Tanh", "Sigmoid",
		"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "RotaryEmbedding", "QuantizeLinear", "DequantizeLinear", "CumSum", "Trilu", "ScatterND", "ScatterElements", "TensorScatter"),
		n.Domain == "com.microsoft":
		return h.rankOf(first)
	}
	return unknown
}

// attentionRank is the rank of an output of ONNX's Attention: keys, values and scores have an axis of heads. So has its result
// where the query has one; numbers of heads are given to it where it has none.
func (h *shapeHints) attentionRank(n *onnx.Node, value string) int {
	if value != n.Outputs[0] {
		return 4
	}
	r := h.rankOf(n.Inputs[0])
	if r == unknown && n.Int("q_num_heads", 0) > 0 {
		return 3
	}
	return r
}

// broadcast returns the rank of two values that are broadcast to one shape.
func (h *shapeHints) broadcast(a, b int) int {
	if a == unknown || b == unknown {
		return unknown
	}
	return max(a, b)
}

// axes returns how many dimensions an Unsqueeze or Squeeze adds or removes.
func (h *shapeHints) axes(n *onnx.Node) int {
	if a := n.Ints("axes"); a != nil {
		return len(a)
	}
	if len(n.Inputs) == 2 {
		return h.length(n.Inputs[1])
	}
	return unknown
}
