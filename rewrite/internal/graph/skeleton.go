package graph

import (
	"errors"
	"io/fs"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// MaxKept is the number of elements up to which a constant of floats or of
// quantised weights is kept; a larger one is replaced by zeros, which need no
// bytes in the model.
const MaxKept = 1024

// Quantised reports whether weights have this type, and sizes and indices never.
func Quantised(t onnx.DataType) bool { return t == onnx.Uint8 || t == onnx.Int8 }

// Absent reports whether a constant is external data that is not there: a model
// can be looked at without its weights.
func Absent(t *onnx.Tensor) bool {
	_, err := t.Bytes()
	return errors.Is(err, fs.ErrNotExist)
}

// Projection is what is known of a node that makes something of each token by
// itself, with weights: its output has the shape of from, up to the dimension to,
// and width elements behind that.
type Projection struct {
	From    string
	To      int64 // −1 replaces the last dimension; maxRank adds one
	Width   int64
	Element onnx.DataType
}

// LooksUp reports whether it takes rows of a table instead of a product.
func (p *Projection) LooksUp() bool { return p.To == ir.MaxRank }

// Projection reads a node; nil when it is none.
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
	across := n.Int("transB", 0) & 1 // the weight's dimension that the output has
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
		return of(0, -1, dims[1-across], t)
	}
	return nil
}

// weightDims returns the dimensions and the element type of a weight, nil where
// it is computed in a way that is not known. Nothing of it is read.
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
