package graph

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// length returns the number of elements of a value with one dimension, such as a list
// of sizes, or unknown.
func (h *shapeHints) length(value string) int {
	if t := h.graph.Constants[value]; t != nil {
		if len(t.Dims) == 1 && t.Dims[0] <= math.MaxInt32 {
			return int(t.Dims[0])
		}
		return unknown
	}
	if v := h.declared[value]; v != nil && v.HasShape && len(v.Shape) == 1 && v.Shape[0].Value > 0 {
		return int(v.Shape[0].Value)
	}
	if l, done := h.lengths[value]; done {
		return l
	}
	l := unknown
	if n := h.graph.Producer[value]; n != nil && len(n.Inputs) > 0 {
		l = h.outputLength(n)
	}
	h.lengths[value] = l
	return l
}

// outputLength returns the length of n's output as it follows from its inputs.
func (h *shapeHints) outputLength(n *onnx.Node) int {
	switch {
	case ir.Standard(n, "Shape") && n.Int("start", 0) == 0 && n.Attribute("end") == nil:
		return h.rankOf(n.Inputs[0])
	case ir.Standard(n, "Concat"):
		sum := 0
		for _, v := range n.Inputs {
			l := h.length(v)
			if l == unknown {
				return unknown
			}
			sum += l
		}
		return sum
	case ir.Standard(n, "Unsqueeze"):
		if h.rankOf(n.Inputs[0]) == 0 && h.axes(n) == 1 {
			return 1
		}
	case ir.Standard(n, "Cast", "Identity", "Neg"):
		return h.length(n.Inputs[0])
	case ir.Standard(n, "Add", "Sub", "Mul", "Div", "Where", "Min", "Max", "Equal"):
		longest := 1
		for _, v := range n.Inputs {
			l := h.length(v)
			if l == unknown && h.rankOf(v) == 0 {
				l = 1
			}
			if l == unknown {
				return unknown
			}
			longest = max(longest, l)
		}
		return longest
	case ir.Standard(n, "ConstantOfShape"):
		if v := h.graph.Integers(n.Inputs[0]); len(v) == 1 && v[0] >= 0 && v[0] <= math.MaxInt32 {
			return int(v[0])
		}
		// One number for each element of a list.
		if of := h.graph.Producer[n.Inputs[0]]; of != nil && ir.Standard(of, "Shape") && h.rankOf(of.Inputs[0]) == 1 {
			return h.length(of.Inputs[0])
		}
	case ir.Standard(n, "Reshape") && len(n.Inputs) == 2:
		// Exporters reshape a value to [−1] also where it is a list already.
		if t := h.graph.Constants[n.Inputs[1]]; t != nil && t.Len() == 1 && h.rankOf(n.Inputs[0]) <= 1 {
			if h.rankOf(n.Inputs[0]) == 0 {
				return 1
			}
			return h.length(n.Inputs[0])
		}
	case ir.Standard(n, "Gather") && len(n.Inputs) == 2:
		return h.length(n.Inputs[1])
	}
	return unknown
}
