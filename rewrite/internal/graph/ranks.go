package graph

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// unknown is the rank or length of which the graph says nothing.
const unknown = -1

// rank is the number of a value's dimensions, where the graph tells it.
func (k *shapeHints) rank(value string) (int, bool) {
	r := k.rankOf(value)
	return r, r != unknown
}

func (k *shapeHints) rankOf(value string) int {
	if t := k.graph.Constants[value]; t != nil {
		return len(t.Dims)
	}
	if list := ChosenConstants(k.graph.Producer[value], value); list != nil {
		if len(list[0].Dims) != len(list[1].Dims) {
			return unknown
		}
		return len(list[0].Dims)
	}
	if v := k.declared[value]; v != nil && v.HasShape {
		return len(v.Shape)
	}
	if r, done := k.ranks[value]; done {
		return r
	}
	r := unknown
	if n := k.graph.Producer[value]; n != nil && len(n.Inputs) > 0 {
		r = k.outputRank(n)
	}
	k.ranks[value] = r
	return r
}

// outputRank follows from a node's inputs.
func (k *shapeHints) outputRank(n *onnx.Node) int {
	first := n.Inputs[0]
	// plus adds sign · by where both are known.
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
		return k.length(n.Inputs[1])
	case ir.Standard(n, "Expand") && len(n.Inputs) == 2:
		return k.broadcast(k.rankOf(first), k.length(n.Inputs[1]))
	case ir.Standard(n, "ConstantOfShape"):
		return k.length(first)
	case ir.Standard(n, "Shape", "Range"):
		return 1
	case ir.Standard(n, "Unsqueeze"):
		return plus(k.rankOf(first), 1, k.axes(n))
	case ir.Standard(n, "Squeeze"):
		return plus(k.rankOf(first), -1, k.axes(n))
	case ir.Standard(n, "Gather") && len(n.Inputs) == 2:
		return plus(plus(k.rankOf(first), 1, k.rankOf(n.Inputs[1])), -1, 1)
	case ir.Standard(n, "MatMul", "Add", "Sub", "Mul", "Div", "Min", "Max", "Where", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or"),
		n.Domain == "com.microsoft" && n.OpType == "FusedMatMul":
		r := 0
		for _, v := range n.Inputs {
			r = k.broadcast(r, k.rankOf(v))
		}
		return r
	case ir.Standard(n, "Concat", "Slice", "Split", "Identity", "Cast", "Neg", "Not", "Softmax", "Transpose", "Pad", "Tile", "Cos", "Sin", "Sqrt", "Tanh", "Sigmoid",
		"LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization", "RotaryEmbedding", "QuantizeLinear", "DequantizeLinear", "CumSum", "Trilu", "ScatterND", "ScatterElements"),
		n.Domain == "com.microsoft":
		return k.rankOf(first)
	}
	return unknown
}

// broadcast is the rank of two values together.
func (k *shapeHints) broadcast(a, b int) int {
	if a == unknown || b == unknown {
		return unknown
	}
	return max(a, b)
}

// axes is the number of dimensions that an Unsqueeze or Squeeze adds or removes.
func (k *shapeHints) axes(n *onnx.Node) int {
	if a := n.Ints("axes"); a != nil {
		return len(a)
	}
	if len(n.Inputs) == 2 {
		return k.length(n.Inputs[1])
	}
	return unknown
}

// length is the number of elements of a list of sizes.
func (k *shapeHints) length(value string) int {
	if t := k.graph.Constants[value]; t != nil {
		if len(t.Dims) == 1 && t.Dims[0] <= math.MaxInt32 {
			return int(t.Dims[0])
		}
		return unknown
	}
	if v := k.declared[value]; v != nil && v.HasShape && len(v.Shape) == 1 && v.Shape[0].Value > 0 {
		return int(v.Shape[0].Value)
	}
	if l, done := k.lengths[value]; done {
		return l
	}
	l := unknown
	if n := k.graph.Producer[value]; n != nil && len(n.Inputs) > 0 {
		l = k.outputLength(n)
	}
	k.lengths[value] = l
	return l
}

func (k *shapeHints) outputLength(n *onnx.Node) int {
	switch {
	case ir.Standard(n, "Shape") && n.Int("start", 0) == 0 && n.Attribute("end") == nil:
		return k.rankOf(n.Inputs[0])
	case ir.Standard(n, "Concat"):
		sum := 0
		for _, v := range n.Inputs {
			l := k.length(v)
			if l == unknown {
				return unknown
			}
			sum += l
		}
		return sum
	case ir.Standard(n, "Unsqueeze"):
		if k.rankOf(n.Inputs[0]) == 0 && k.axes(n) == 1 {
			return 1
		}
	case ir.Standard(n, "Cast", "Identity", "Neg"):
		return k.length(n.Inputs[0])
	case ir.Standard(n, "Add", "Sub", "Mul", "Div", "Where", "Min", "Max", "Equal"):
		longest := 1
		for _, v := range n.Inputs {
			l := k.length(v)
			if l == unknown && k.rankOf(v) == 0 {
				l = 1
			}
			if l == unknown {
				return unknown
			}
			longest = max(longest, l)
		}
		return longest
	case ir.Standard(n, "ConstantOfShape"):
		if v := k.graph.Integers(n.Inputs[0]); len(v) == 1 && v[0] >= 0 && v[0] <= math.MaxInt32 {
			return int(v[0])
		}
	case ir.Standard(n, "Reshape") && len(n.Inputs) == 2:
		// Exporters flatten a list that is one already with the shape [−1].
		if t := k.graph.Constants[n.Inputs[1]]; t != nil && t.Len() == 1 && k.rankOf(n.Inputs[0]) <= 1 {
			if k.rankOf(n.Inputs[0]) == 0 {
				return 1
			}
			return k.length(n.Inputs[0])
		}
	case ir.Standard(n, "Gather") && len(n.Inputs) == 2:
		return k.length(n.Inputs[1])
	}
	return unknown
}
