package float16

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// OutputType returns the element type of a node's i-th output, given those of the
// values before it; Undefined when it is not known.
func OutputType(n *onnx.Node, i int, types map[string]onnx.DataType) onnx.DataType {
	switch {
	case standard(n, "TopK", "Unique", "MaxPool") && i > 0:
		return onnx.Int64 // places
	case standard(n, "OneHot") && len(n.Inputs) == 3:
		return types[n.Inputs[2]]
	case standard(n, "Cast"):
		return onnx.DataType(n.Int("to", 0))
	case standard(n, "Shape", "Size", "NonZero", "ArgMax", "ArgMin"):
		return onnx.Int64
	case standard(n, "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf"):
		return onnx.Bool
	case standard(n, "ConstantOfShape", "Constant"):
		if t := n.Tensor("value"); t != nil {
			return t.Type
		}
		if n.Attribute("value_int") != nil || n.Attribute("value_ints") != nil {
			return onnx.Int64
		}
		return onnx.Float
	case standard(n, "DequantizeLinear", "CastLike") && len(n.Inputs) > 1:
		return types[n.Inputs[1]]
	case standard(n, "If"):
		var t onnx.DataType
		for branch := range n.Subgraphs() {
			for _, o := range branch.Outputs {
				if t != onnx.Undefined && t != o.Type {
					return onnx.Undefined
				}
				t = o.Type
			}
		}
		return t
	case standard(n, "Where") && len(n.Inputs) == 3:
		return types[n.Inputs[1]]
	}
	for _, v := range n.Inputs {
		if v != "" {
			return types[v]
		}
	}
	return onnx.Undefined
}

// RetypeValue gives the float tensor that n holds another type, float32 or double.
func RetypeValue(n *onnx.Node, to onnx.DataType) {
	t := n.Tensor("value")
	switch {
	case t == nil && standard(n, "ConstantOfShape"):
		n.SetAttribute(onnx.TensorAttr("value", onnx.NewTensor("", to, []int64{1}, make([]byte, to.Size()))))
	case t != nil && isFloat(t.Type):
		values, err := t.Float64s()
		if err != nil {
			return // the same bytes already made the piece fail
		}
		var raw []byte
		for _, x := range values {
			if to == onnx.Float {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
			} else {
				raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(x))
			}
		}
		n.SetAttribute(onnx.TensorAttr("value", onnx.NewTensor(t.Name, to, t.Dims, raw)))
	}
}

// standard reports whether n is the standard op of that name.
func standard(n *onnx.Node, ops ...string) bool {
	return (n.Domain == "" || n.Domain == "ai.onnx") && slices.Contains(ops, n.OpType)
}

func isFloat(t onnx.DataType) bool {
	return t == onnx.Float || t == onnx.Double || Short(t)
}
