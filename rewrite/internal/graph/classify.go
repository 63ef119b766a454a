package graph

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Class says what a value depends on. A node's outputs have the highest class of its
// inputs.
type Class uint8

// The classes, from low to high.
const (
	ConstantClass Class = iota // nothing but weights and constants
	ShapeClass                 // sizes of tensors
	PositionClass              // contents of integer inputs: ids, positions, masks
	DataClass                  // hidden states and caches
)

// classify gives every value its class. Hidden states begin at the first product with
// a weight matrix, so that embeddings and inv_freq × positions are not taken for data.
// What a Shape node gives depends on sizes only, whatever the class of its input.
func (g *Graph) classify() {
	g.Classes = make(map[string]Class, len(g.Producer))
	for name, v := range g.Inputs {
		g.Classes[name] = PositionClass
		if ir.IsFloat(v.Type) {
			g.Classes[name] = DataClass
		}
	}
	sizes := bound.NewEstimate(0)
	for name, t := range g.Constants {
		sizes.Constant(name, t)
	}
	g.constantDims = sizes.Dims
	for _, n := range g.Nodes {
		c := ConstantClass
		for v := range ir.Uses(n) {
			c = max(c, g.Classes[v])
		}
		switch {
		case c > ConstantClass && ir.Standard(n, "Shape", "Size"):
			c = ShapeClass
		case c >= ShapeClass && (g.WeightProduct(n) || ir.Standard(n, "DynamicQuantizeLinear")):
			c = DataClass // it quantises an embedding for the product that follows
		case ir.Standard(n, "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"):
			c = DataClass
		}
		for _, o := range n.Outputs {
			g.Classes[o] = c
		}
		if c == ConstantClass && len(n.Outputs) > 0 && g.Constants[n.Outputs[0]] == nil {
			sizes.Follow(n)
		}
	}
}

// WeightProduct reports whether n multiplies by a weight matrix: a constant with two
// dimensions above 1, of which the product sums over one and keeps the other.
// inv_freq [1, n, 1] is no weight matrix, nor is inv_freq [batch, n, 1] in a model
// with a static batch.
func (g *Graph) WeightProduct(n *onnx.Node) bool {
	switch {
	case ir.Standard(n, "MatMul", "Gemm") && len(n.Inputs) >= 2:
		return g.matrix(n.Inputs[0]) || g.matrix(n.Inputs[1])
	case ir.Standard(n, "Einsum") && len(n.Inputs) >= 2: // its equation may sum over any dimension
		return g.Weight(n.Inputs[0]) || g.Weight(n.Inputs[1])
	case ir.Standard(n, "Conv", "ConvTranspose", "MatMulInteger", "QLinearMatMul", "QLinearConv", "ConvInteger", "LSTM", "GRU", "RNN"):
		return true
	}
	if n.Domain == "com.microsoft" {
		switch n.OpType {
		case "MatMulNBits", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulBnb4", "MatMulFpQ4", "QMoE", "MoE",
			"Attention", "QAttention", "PackedAttention":
			return true
		case "FusedMatMul", "GemmFastGelu":
			return g.matrix(n.Inputs[0]) || g.matrix(n.Inputs[1])
		}
	}
	return false
}

// weightPlace returns which input of a product of quantised matrices is the weight.
func weightPlace(n *onnx.Node) int {
	if n.OpType == "QLinearMatMul" {
		return 3
	}
	return 1
}

// Weight reports whether a value is a constant with more than one dimension above 1.
// A constant of unknown shape, such as a dequantised weight, counts as one.
func (g *Graph) Weight(value string) bool {
	if g.Classes[value] != ConstantClass {
		return false
	}
	dims, known := g.constantDims[value]
	return !known || wider(dims) > 1
}

// matrix reports whether the last two dimensions of a constant, those that a MatMul
// works on, are both above 1.
func (g *Graph) matrix(value string) bool {
	if !g.Weight(value) {
		return false
	}
	dims, known := g.constantDims[value]
	return !known || wider(dims[len(dims)-2:]) > 1
}

// wider counts the dimensions above 1.
func wider(dims []int64) (count int) {
	for _, d := range dims {
		if d > 1 {
			count++
		}
	}
	return count
}

// IsData reports whether a value depends on hidden states or caches.
func (g *Graph) IsData(value string) bool { return value != "" && g.Classes[value] == DataClass }
