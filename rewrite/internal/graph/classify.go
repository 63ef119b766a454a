package graph

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// class says what a value depends on; a node's outputs have the highest class
// of its inputs.
type class uint8

const (
	ConstantClass class = iota // nothing but weights and constants
	ShapeClass                 // sizes of tensors
	PositionClass              // values of integer inputs: ids, positions, masks
	dataClass                  // hidden states and caches
)

// classify gives every value its class. Hidden states begin at the first
// product with a weight matrix, so that embeddings and inv_freq × positions
// are not taken for data. Shape cuts the dependence on values.
func (g *Graph) classify() {
	g.Classes = make(map[string]class, len(g.Producer))
	for name, v := range g.Inputs {
		g.Classes[name] = PositionClass
		if ir.IsFloat(v.Type) {
			g.Classes[name] = dataClass
		}
	}
	sizes := bound.NewEstimate()
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
			c = dataClass // an embedding is quantised for the product that follows
		case ir.Standard(n, "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"):
			c = dataClass
		}
		for _, o := range n.Outputs {
			g.Classes[o] = c
		}
		if c == ConstantClass && len(n.Outputs) > 0 && g.Constants[n.Outputs[0]] == nil {
			sizes.Follow(n)
		}
	}
}

// WeightProduct reports whether n multiplies by a weight matrix: a constant
// that a product can sum over and keep a dimension of. inv_freq [1, n, 1] is
// none, nor is it when it stands there once for each row of a fixed batch.
func (g *Graph) WeightProduct(n *onnx.Node) bool {
	switch {
	case ir.Standard(n, "MatMul", "Gemm") && len(n.Inputs) >= 2:
		return g.matrix(n.Inputs[0]) || g.matrix(n.Inputs[1])
	case ir.Standard(n, "Einsum") && len(n.Inputs) >= 2: // which names what it sums over
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

// weightPlace is which input of a product of quantised matrices is the weight.
func weightPlace(n *onnx.Node) int {
	if n.OpType == "QLinearMatMul" {
		return 3
	}
	return 1
}

// Weight reports whether a value is a constant with more than one dimension above 1.
func (g *Graph) Weight(value string) bool {
	if g.Classes[value] != ConstantClass {
		return false
	}
	dims, known := g.constantDims[value]
	return !known || wider(dims) > 1 // unknown: a dequantised weight
}

// matrix reports whether a value is a weight in its last two dimensions, which
// are those that a MatMul works on.
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

func (g *Graph) IsData(value string) bool { return value != "" && g.Classes[value] == dataClass }
