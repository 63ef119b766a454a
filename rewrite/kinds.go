package rewrite

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// kinds tells ranks and element types of values, as far as the graph does: from
// what it declares, and through the nodes that hidden states usually come from.
// A model may declare what is wrong; what is concluded from it is proven later.
type kinds struct {
	graph    *graph
	declared map[string]*onnx.ValueInfo
}

// maxTrail bounds how many nodes are gone back for one answer.
const maxTrail = 64

func newKinds(g *graph) *kinds {
	k := &kinds{graph: g, declared: map[string]*onnx.ValueInfo{}}
	for _, list := range [][]*onnx.ValueInfo{g.model.Graph.ValueInfo, g.model.Graph.Outputs, g.model.Graph.Inputs} {
		for _, v := range list {
			k.declared[v.Name] = v
		}
	}
	return k
}

func (k *kinds) rank(value string) (int, bool) { return k.rankOf(value, maxTrail) }

func (k *kinds) rankOf(value string, trail int) (int, bool) {
	if t := k.graph.constants[value]; t != nil {
		return len(t.Dims), true
	}
	if v := k.declared[value]; v != nil && v.HasShape {
		return len(v.Shape), true
	}
	n := k.graph.producer[value]
	if n == nil || trail == 0 || len(n.Inputs) == 0 {
		return 0, false
	}
	switch {
	case standard(n, "Transpose") && n.Ints("perm") != nil:
		return len(n.Ints("perm")), true
	case standard(n, "Reshape", "Expand") && len(n.Inputs) == 2:
		return k.length(n.Inputs[1])
	case standard(n, "MatMul") && k.graph.weight(n.Inputs[1]),
		standard(n, "Identity", "Cast", "Neg", "Slice", "Split", "Softmax", "LayerNormalization", "RMSNormalization", "RotaryEmbedding"):
		return k.rankOf(n.Inputs[0], trail-1)
	case standard(n, "Add", "Sub", "Mul", "Div"):
		a, known := k.rankOf(n.Inputs[0], trail-1)
		b, also := k.rankOf(n.Inputs[len(n.Inputs)-1], trail-1)
		return max(a, b), known && also
	}
	return 0, false
}

// length is the number of elements of a list of sizes.
func (k *kinds) length(value string) (int, bool) {
	if t := k.graph.constants[value]; t != nil && len(t.Dims) == 1 {
		return int(t.Dims[0]), true
	}
	if v := k.declared[value]; v != nil && v.HasShape && len(v.Shape) == 1 && v.Shape[0].Value > 0 {
		return int(v.Shape[0].Value), true
	}
	return 0, false
}

// width is a value's last dimension.
func (k *kinds) width(value string) (int64, bool) { return k.widthOf(value, maxTrail) }

func (k *kinds) widthOf(value string, trail int) (int64, bool) {
	last := func(dims []int64) (int64, bool) {
		if len(dims) == 0 || dims[len(dims)-1] < 1 {
			return 0, false
		}
		return dims[len(dims)-1], true
	}
	if t := k.graph.constants[value]; t != nil {
		return last(t.Dims)
	}
	if v := k.declared[value]; v != nil && len(v.Shape) > 0 && v.Shape[len(v.Shape)-1].Value > 0 {
		return v.Shape[len(v.Shape)-1].Value, true
	}
	n := k.graph.producer[value]
	if n == nil || trail == 0 || len(n.Inputs) == 0 {
		return 0, false
	}
	constant := func(i int) *onnx.Tensor {
		if i < len(n.Inputs) {
			return k.graph.constants[n.Inputs[i]]
		}
		return nil
	}
	switch {
	case standard(n, "MatMul") && constant(1) != nil:
		return last(constant(1).Dims)
	case standard(n, "Gemm") && constant(1) != nil && len(constant(1).Dims) == 2:
		return constant(1).Dims[1-n.Int("transB", 0)&1], true
	case n.Domain == "com.microsoft" && n.OpType == "MatMulNBits" && n.Int("N", 0) > 0:
		return n.Int("N", 0), true
	case standard(n, "Add", "Sub", "Mul", "Div"):
		for _, v := range n.Inputs {
			if w, ok := k.widthOf(v, trail/2); ok && w > 1 { // 1 may be broadcast
				return w, true
			}
		}
	case standard(n, "Reshape") && constant(1) != nil:
		to, err := constant(1).Int64s()
		if err != nil {
			return 0, false
		}
		return last(to)
	case standard(n, "Split") && constant(1) != nil && slices.Contains([]int64{-1, 2}, n.Int("axis", 0)):
		sizes, err := constant(1).Int64s()
		if i := slices.Index(n.Outputs, value); err == nil && i < len(sizes) {
			return sizes[i], true
		}
	case standard(n, "Identity", "Cast", "Neg", "LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
		n.OpType == "RotaryEmbedding":
		return k.widthOf(n.Inputs[0], trail-1)
	}
	return 0, false
}

func (k *kinds) element(value string) onnx.DataType { return k.elementOf(value, maxTrail) }

func (k *kinds) elementOf(value string, trail int) onnx.DataType {
	if t := k.graph.constants[value]; t != nil {
		return t.Type
	}
	if v := k.declared[value]; v != nil && v.Type != onnx.Undefined {
		return v.Type
	}
	n := k.graph.producer[value]
	switch {
	case n == nil || trail == 0 || len(n.Inputs) == 0:
		return onnx.Undefined
	case standard(n, "Cast"):
		return onnx.DataType(n.Int("to", 0))
	case standard(n, "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf"):
		return onnx.Bool
	case standard(n, "Where") && len(n.Inputs) == 3:
		return k.elementOf(n.Inputs[1], trail-1)
	case standard(n, "Identity", "Neg", "Slice", "Split", "Softmax", "LayerNormalization", "RMSNormalization", "RotaryEmbedding", "Attention",
		"MatMul", "Gemm", "Add", "Sub", "Mul", "Div", "Transpose", "Reshape", "Expand", "Unsqueeze", "Squeeze", "Concat", "Gather", "GatherND", "Tile"):
		return k.elementOf(n.Inputs[0], trail-1)
	}
	return onnx.Undefined
}
