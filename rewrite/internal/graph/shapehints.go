package graph

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// shapeHints tells ranks and element types of values, as far as the graph does: from
// what it declares, and through the nodes that hidden states usually come from.
// A model may declare what is wrong; what is concluded from it is proven later.
type shapeHints struct {
	graph    *Graph
	declared map[string]*onnx.ValueInfo
	ranks    map[string]int // those that were asked for; unknown where the graph does not tell
	lengths  map[string]int // of lists of sizes
	widths   map[string]int64
}

// maxTrail bounds how many nodes are gone back for one answer.
const maxTrail = 64

func newShapeHints(g *Graph) *shapeHints {
	k := &shapeHints{graph: g, declared: map[string]*onnx.ValueInfo{}, ranks: map[string]int{}, lengths: map[string]int{}, widths: map[string]int64{}}
	for _, list := range [][]*onnx.ValueInfo{g.Model.Graph.ValueInfo, g.Model.Graph.Outputs, g.Model.Graph.Inputs} {
		for _, v := range list {
			k.declared[v.Name] = v
		}
	}
	return k
}

func (k *shapeHints) element(value string) onnx.DataType { return k.elementOf(value, maxTrail) }

func (k *shapeHints) elementOf(value string, trail int) onnx.DataType {
	if t := k.graph.Constants[value]; t != nil {
		return t.Type
	}
	if v := k.declared[value]; v != nil && v.Type != onnx.Undefined {
		return v.Type
	}
	n := k.graph.Producer[value]
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
		return k.elementOf(n.Inputs[1], trail-1)
	case ir.Standard(n, "Identity", "Neg", "Slice", "Split", "Softmax", "LayerNormalization", "RMSNormalization", "RotaryEmbedding", "Attention",
		"MatMul", "Gemm", "Add", "Sub", "Mul", "Div", "Transpose", "Reshape", "Expand", "Unsqueeze", "Squeeze", "Concat", "Gather", "GatherND", "Tile"):
		return k.elementOf(n.Inputs[0], trail-1)
	}
	return onnx.Undefined
}
