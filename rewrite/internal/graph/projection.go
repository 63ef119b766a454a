package graph

import (
	"errors"
	"io/fs"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// MaxKept is the largest number of elements of a constant of floats or of quantised
// weights whose contents are kept where shapes are measured. A larger one is replaced
// by zeros, which take no bytes.
const MaxKept = 1024

// Quantised reports whether this is an element type of quantised weights. Sizes and
// indices never have it.
func Quantised(t onnx.DataType) bool { return t == onnx.Uint8 || t == onnx.Int8 }

// Absent reports whether a constant is external data whose file is missing: a model
// can be inspected without its weights.
func Absent(t *onnx.Tensor) bool {
	_, err := t.Bytes()
	return errors.Is(err, fs.ErrNotExist)
}

// Projection describes a node that maps each token by itself, with weights: a product
// with a weight matrix, or a lookup in a table. Its output has the shape of the value
// From, with the dimensions from To on replaced by one of size Width.
type Projection struct {
	From    string
	To      int64 // −1 replaces the last dimension; ir.MaxRank replaces none, so that one is added
	Width   int64
	Element onnx.DataType // of the output
}

// LooksUp reports whether the node takes rows of a table, as an embedding does.
func (p *Projection) LooksUp() bool { return p.To == ir.MaxRank }

// Projection returns n as a projection, nil when it is none or its width is not known.
func (g *Graph) Projection(n *onnx.Node) *Projection {
	of := func(from int, to, width int64, t onnx.DataType) *Projection {
		return &Projection{n.Inputs[from], to, width, t}
	}
	if ir.Standard(n, "Gather") && n.Int("axis", 0) == 0 {
		if dims, t := g.weightDims(n.Inputs[0]); len(dims) == 2 && (ir.IsFloat(t) || Quantised(t)) && dims[0]*dims[1] > MaxKept {
			return of(1, ir.MaxRank, dims[1], t)
		}
		return nil
	}
	if !g.WeightProduct(n) || len(n.Inputs) < 2 || g.Weight(n.Inputs[0]) {
		return nil
	}
	dims, t := g.weightDims(n.Inputs[1])
	transposed := n.Int("transB", 0) & 1 // 1 where the weight is [out, in]
	switch {
	case n.OpType == "MatMulNBits" && len(n.Inputs) > 2 && n.Int("N", 0) > 0:
		if scales := g.Constants[n.Inputs[2]]; scales != nil {
			return of(0, -1, n.Int("N", 0), scales.Type)
		}
	case len(dims) != 2:
	case ir.Standard(n, "MatMul"):
		return of(0, -1, dims[1], t)
	case ir.Standard(n, "MatMulInteger"):
		return of(0, -1, dims[1], onnx.Int32)
	case n.Domain == "com.microsoft" && (n.OpType == "DynamicQuantizeMatMul" || n.OpType == "MatMulIntegerToFloat"):
		return of(0, -1, dims[1], onnx.Float)
	case ir.Standard(n, "Gemm") && n.Int("transA", 0) == 0,
		n.OpType == "FusedMatMul" && n.Int("transA", 0) == 0 && n.Int("transBatchA", 0) == 0:
		return of(0, -1, dims[1-transposed], t)
	}
	return nil
}

// weightDims returns the shape and the element type of a weight, nil where they are not
// known. The contents are not read.
func (g *Graph) weightDims(value string) ([]int64, onnx.DataType) {
	if t := g.Constants[value]; t != nil {
		return t.Dims, t.Type
	}
	n := g.Producer[value]
	if n == nil || len(n.Inputs) == 0 {
		return nil, onnx.Undefined
	}
	switch {
	case ir.Standard(n, "Identity"):
		return g.weightDims(n.Inputs[0])
	case ir.Standard(n, "Cast"):
		dims, _ := g.weightDims(n.Inputs[0])
		return dims, onnx.DataType(n.Int("to", 0))
	case ir.Standard(n, "DequantizeLinear") && len(n.Inputs) > 1:
		dims, _ := g.weightDims(n.Inputs[0])
		if scale := g.Constants[n.Inputs[1]]; scale != nil {
			return dims, scale.Type
		}
	case ir.Standard(n, "Transpose"):
		if dims, t := g.weightDims(n.Inputs[0]); len(dims) == 2 {
			if perm := n.Ints("perm"); perm == nil || len(perm) == 2 && perm[0] == 1 {
				return []int64{dims[1], dims[0]}, t
			}
			return dims, t
		}
	}
	return nil, onnx.Undefined
}
