package ir

import (
	"encoding/binary"
	"math"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// ConstantValue returns the tensor that a Constant node makes, nil for other
// nodes and for constants that are not tensors of numbers.
func ConstantValue(n *onnx.Node) *onnx.Tensor {
	if !Standard(n, "Constant") || len(n.Outputs) != 1 {
		return nil
	}
	name := n.Outputs[0]
	if t := n.Tensor("value"); t != nil {
		return t
	}
	for _, a := range n.Attributes {
		switch a.Name {
		case "value_int":
			return Int64Tensor(name, []int64{}, a.Int)
		case "value_ints":
			return Int64Tensor(name, []int64{int64(len(a.Ints))}, a.Ints...)
		case "value_float":
			return Float32Tensor(name, []int64{}, a.Float)
		case "value_floats":
			return Float32Tensor(name, []int64{int64(len(a.Floats))}, a.Floats...)
		}
	}
	return nil
}

// Int64Tensor returns a constant of int64.
func Int64Tensor(name string, dims []int64, values ...int64) *onnx.Tensor {
	raw := []byte{}
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return onnx.NewTensor(name, onnx.Int64, dims, raw)
}

// Float32Tensor returns a constant of float32.
func Float32Tensor(name string, dims []int64, values ...float32) *onnx.Tensor {
	raw := []byte{}
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return onnx.NewTensor(name, onnx.Float, dims, raw)
}

// FloatTensor returns a constant of a floating-point type, to which the values are rounded.
func FloatTensor(name string, t onnx.DataType, dims []int64, values ...float64) *onnx.Tensor {
	raw := []byte{}
	for _, v := range values {
		switch t {
		case onnx.Double:
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
		case onnx.Float16:
			raw = binary.LittleEndian.AppendUint16(raw, float16.Fromfloat32(float32(v)).Bits())
		case onnx.BFloat16:
			raw = binary.LittleEndian.AppendUint16(raw, uint16(math.Float32bits(float32(rope.BFloat16.Round(v)))>>16))
		default:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
		}
	}
	return onnx.NewTensor(name, t, dims, raw)
}

// Zeros returns a node that makes zeros in the shape that a value holds.
func Zeros(t onnx.DataType, shape, output string) *onnx.Node {
	zero := onnx.NewTensor("", t, []int64{1}, make([]byte, t.Size()))
	return onnx.NewNode("ConstantOfShape", []string{shape}, []string{output}, onnx.TensorAttr("value", zero))
}

// LastAxis reports whether axis is the last of rank dimensions, counted from either end.
func LastAxis(axis int64, rank int) bool { return axis == -1 || axis == int64(rank-1) }
