package graph

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// shapeHints answers what rank, last dimension and element type a value has, without
// running anything: from declared shapes and types, and from the ops that usually make
// hidden states. They are hints, because a model may declare what is wrong; a proof
// later checks what was concluded from them.
type shapeHints struct {
	graph    *Graph
	declared map[string]*onnx.ValueInfo
	ranks    map[string]int // answers so far
	lengths  map[string]int // answers so far, of lists of sizes
	widths   map[string]int64
}

// maxTrail is the largest number of nodes that one answer goes back.
const maxTrail = 64

func newShapeHints(g *Graph) *shapeHints {
	h := &shapeHints{graph: g, declared: map[string]*onnx.ValueInfo{}, ranks: map[string]int{}, lengths: map[string]int{}, widths: map[string]int64{}}
	for _, list := range [][]*onnx.ValueInfo{g.Model.Graph.ValueInfo, g.Model.Graph.Outputs, g.Model.Graph.Inputs} {
		for _, v := range list {
			h.declared[v.Name] = v
		}
	}
	return h
}

// element returns the element type of a value, or Undefined.
func (h *shapeHints) element(value string) onnx.DataType { return h.elementOf(value, maxTrail) }

// elementOf does so going back at most trail nodes.
func (h *shapeHints) elementOf(value string, trail int) onnx.DataType {
	if t := h.graph.Constants[value]; t != nil {
		return t.Type
	}
	if v := h.declared[value]; v != nil && v.Type != onnx.Undefined {
		return v.Type
	}
	n := h.graph.Producer[value]
	if list := ChosenConstants(n, value); list != nil {
		return list[0].Type
	}
	switch {
	case n == nil || trail == 0 || len(n.Inputs) == 0:
		return onnx.Undefined
	case ir.Standard(n, "Cast"):
		return onnx.DataType(n.Int("to", 0))
	case ir.Standard(n, "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf"):
		return onnx.Bool
	case ir.Standard(n, "Where") && len(n.Inputs) == 3:
		return h.elementOf(n.Inputs[1], trail-1)
	case ir.Standard(n, "Identity", "Neg", "Slice", "Split", "Softmax", "LayerNormalization", "RMSNormalization", "RotaryEmbedding", "Attention",
		"MatMul", "Gemm", "Add", "Sub", "Mul", "Div", "Transpose", "Reshape", "Expand", "Unsqueeze", "Squeeze", "Concat", "Gather", "GatherND", "Tile"):
		return h.elementOf(n.Inputs[0], trail-1)
	}
	return onnx.Undefined
}
