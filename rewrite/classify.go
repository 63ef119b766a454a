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
	sizes := newEstimate()
	for name, t := range g.constants {
		sizes.constant(name, t)
	}
	g.fixedDims = sizes.dims
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
		if c == constantClass && len(n.Outputs) > 0 && g.constants[n.Outputs[0]] == nil {
			sizes.follow(n)
		}
	}
}

// weightProduct reports whether n multiplies by a weight matrix: a constant
// that a product can sum over and keep a dimension of. inv_freq [1, n, 1] is
// none, nor is it when it stands there once for each row of a fixed batch.
func (g *graph) weightProduct(n *onnx.Node) bool {
	switch {
	case standard(n, "MatMul", "Gemm") && len(n.Inputs) >= 2:
		return g.matrix(n.Inputs[0]) || g.matrix(n.Inputs[1])
	case standard(n, "Einsum") && len(n.Inputs) >= 2: // which names what it sums over
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

// weight reports whether a value is a constant with more than one dimension above 1.
func (g *graph) weight(value string) bool {
	if g.classes[value] != constantClass {
		return false
	}
	dims, known := g.fixedDims[value]
	return !known || wider(dims) > 1 // unknown: a dequantised weight
}

// matrix reports whether a value is a weight in its last two dimensions, which
// are those that a MatMul works on.
func (g *graph) matrix(value string) bool {
	if !g.weight(value) {
		return false
	}
	dims, known := g.fixedDims[value]
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

func (g *graph) isData(value string) bool { return value != "" && g.classes[value] == dataClass }
