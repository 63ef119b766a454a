package rewrite

import "github.com/rope-rewrite/rope-rewrite/onnx"

// class says what a value depends on; a node's outputs have the highest class
// of its inputs.
type class uint8

const (
	constantClass class = iota // nothing but weights and constants
	shapeClass                 // sizes of tensors
	positionClass              // values of integer inputs: ids, positions, masks
	dataClass                  // hidden states and caches
)

// classify gives every value its class. Hidden states begin at the first
// product with a weight matrix, so that embeddings and inv_freq × positions
// are not taken for data. Shape cuts the dependence on values.
func (g *graph) classify() {
	g.classes = make(map[string]class, len(g.producer))
	for name, v := range g.inputs {
		g.classes[name] = positionClass
		if isFloat(v.Type) {
			g.classes[name] = dataClass
		}
	}
	for _, n := range g.nodes {
		c := constantClass
		for v := range uses(n) {
			c = max(c, g.classes[v])
		}
		switch {
		case c > constantClass && standard(n, "Shape", "Size"):
			c = shapeClass
		case c >= shapeClass && (g.weightProduct(n) || standard(n, "DynamicQuantizeLinear")):
			c = dataClass // an embedding is quantised for the product that follows
		case standard(n, "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"):
			c = dataClass
		}
		for _, o := range n.Outputs {
			g.classes[o] = c
		}
	}
}

// weightProduct reports whether n multiplies by a weight matrix: a constant
// with more than one dimension above 1. inv_freq [1, n, 1] is none.
func (g *graph) weightProduct(n *onnx.Node) bool {
	switch {
	case standard(n, "MatMul", "Gemm", "Einsum") && len(n.Inputs) >= 2:
		return g.weight(n.Inputs[0]) || g.weight(n.Inputs[1])
	case standard(n, "Conv", "ConvTranspose", "MatMulInteger", "QLinearMatMul", "QLinearConv", "ConvInteger", "LSTM", "GRU", "RNN"):
		return true
	}
	if n.Domain == "com.microsoft" {
		switch n.OpType {
		case "MatMulNBits", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulBnb4", "MatMulFpQ4", "QMoE", "MoE",
			"Attention", "QAttention", "PackedAttention":
			return true
		case "FusedMatMul", "GemmFastGelu":
			return g.weight(n.Inputs[0]) || g.weight(n.Inputs[1])
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

// weight reports whether a value is a constant matrix.
func (g *graph) weight(value string) bool {
	if g.classes[value] != constantClass {
		return false
	}
	// Frequencies that a model in 16 bits casts are as little a matrix as others.
	for standard(g.producer[value], "Cast", "Identity", "Transpose", "Unsqueeze", "Squeeze") {
		value = g.producer[value].Inputs[0]
	}
	t := g.constants[value]
	if t == nil {
		return true // computed from constants: a transposed or dequantised weight
	}
	wide := 0
	for _, d := range t.Dims {
		if d > 1 {
			wide++
		}
	}
	return wide > 1
}

func (g *graph) isData(value string) bool { return value != "" && g.classes[value] == dataClass }
