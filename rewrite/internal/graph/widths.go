package graph

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// width returns a value's last dimension, and whether it is known.
func (h *shapeHints) width(value string) (int64, bool) {
	w := h.widthOf(value)
	return w, w > 0
}

// widthOf returns a value's last dimension, or unknown.
func (h *shapeHints) widthOf(value string) int64 {
	if t := h.graph.Constants[value]; t != nil {
		return last(t.Dims)
	}
	if list := ChosenConstants(h.graph.Producer[value], value); list != nil {
		if last(list[0].Dims) != last(list[1].Dims) {
			return unknown
		}
		return last(list[0].Dims)
	}
	if v := h.declared[value]; v != nil && len(v.Shape) > 0 && v.Shape[len(v.Shape)-1].Value > 0 {
		return v.Shape[len(v.Shape)-1].Value
	}
	if w, done := h.widths[value]; done {
		return w
	}
	w := int64(unknown)
	if n := h.graph.Producer[value]; n != nil && len(n.Inputs) > 0 {
		w = h.outputWidth(n, value)
	}
	h.widths[value] = w
	return w
}

// last returns the last of some dimensions, unknown where there are none.
func last(dims []int64) int64 {
	if len(dims) == 0 {
		return unknown
	}
	return dims[len(dims)-1]
}

// lastSize returns the last element of a list of sizes, or unknown.
func (h *shapeHints) lastSize(value string) int64 {
	if v := h.graph.Integers(value); v != nil {
		return last(v)
	}
	if n := h.graph.Producer[value]; ir.Standard(n, "Concat") && len(n.Inputs) > 0 {
		return last(h.graph.Integers(n.Inputs[len(n.Inputs)-1]))
	}
	return unknown
}

// outputWidth returns the last dimension of n's output value as it follows from its
// inputs.
func (h *shapeHints) outputWidth(n *onnx.Node, value string) int64 {
	switch {
	case ir.Standard(n, "MatMul"):
		return h.widthOf(n.Inputs[1])
	case ir.Standard(n, "Gemm"):
		if t := h.graph.Constants[n.Inputs[1]]; t != nil && len(t.Dims) == 2 {
			return t.Dims[1-n.Int("transB", 0)&1]
		}
	case n.Domain == "com.microsoft" && n.OpType == "FusedMatMul" && n.Int("transB", 0) == 0:
		return h.widthOf(n.Inputs[1])
	case n.Domain == "com.microsoft" && n.OpType == "MatMulNBits":
		return max(n.Int("N", 0), unknown)
	case n.Domain == "com.microsoft" && n.OpType == "MatMulIntegerToFloat", n.Domain == "com.microsoft" && n.OpType == "DynamicQuantizeMatMul",
		ir.Standard(n, "MatMulInteger", "QLinearMatMul"):
		return h.widthOf(n.Inputs[weightPlace(n)])
	case ir.Standard(n, "Add", "Sub", "Mul", "Div"):
		for _, v := range n.Inputs {
			if w := h.widthOf(v); w > 1 { // 1 may be broadcast
				return w
			}
		}
	case ir.Standard(n, "Reshape") && len(n.Inputs) == 2:
		return h.lastSize(n.Inputs[1])
	case ir.Standard(n, "Expand"):
		return h.widthOf(n.Inputs[0])
	case ir.Standard(n, "Split") && slices.Contains([]int64{-1, int64(h.rankOf(n.Inputs[0])) - 1}, n.Int("axis", 0)):
		if len(n.Inputs) == 2 {
			if sizes, i := h.graph.Integers(n.Inputs[1]), slices.Index(n.Outputs, value); i < len(sizes) {
				return sizes[i]
			}
		} else if w := h.widthOf(n.Inputs[0]); w > 0 && w%int64(len(n.Outputs)) == 0 {
			return w / int64(len(n.Outputs))
		}
	case ir.Standard(n, "Transpose"):
		if perm := n.Ints("perm"); len(perm) > 0 && perm[len(perm)-1] == int64(len(perm)-1) {
			return h.widthOf(n.Inputs[0])
		}
	case ir.Standard(n, "Gather") && n.Int("axis", 0) == 0 && h.rankOf(n.Inputs[0]) > 1:
		return h.widthOf(n.Inputs[0])
	case ir.Standard(n, "Identity", "Cast", "Neg", "Cos", "Sin", "Softmax", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization",
		"QuantizeLinear", "DequantizeLinear"), n.OpType == "RotaryEmbedding":
		return h.widthOf(n.Inputs[0])
	}
	return unknown
}
