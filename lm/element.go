package lm

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/x448/float16"
	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// isFloat reports whether caches and logits of a type can be fed and read.
func isFloat(t onnx.DataType) bool { return t == onnx.Float || t == onnx.Float16 || t == onnx.BFloat16 }

// newFloats makes a tensor of zeros, of 32 or 16 bits.
func newFloats(t onnx.DataType, dims ...int64) (ort.Value, error) {
	size := int64(t.Size())
	for _, d := range dims {
		size *= d
	}
	return floatsIn(make([]byte, size), t, dims...)
}

// floatsIn makes a tensor of floats in memory that is there.
func floatsIn(data []byte, t onnx.DataType, dims ...int64) (ort.Value, error) {
	element := ort.TensorElementDataType(ort.TensorElementDataTypeFloat)
	switch t {
	case onnx.Float16:
		element = ort.TensorElementDataTypeFloat16
	case onnx.BFloat16:
		element = ort.TensorElementDataTypeBFloat16
	}
	if len(data) == 0 {
		data = make([]byte, 1) // which the binding wants for a tensor without elements too
	}
	return ort.NewCustomDataTensor(dims, data, element)
}

// newIntegers makes a tensor of whole numbers, of the type that an input has.
func newIntegers(t onnx.DataType, values []int64, dims ...int64) (ort.Value, error) {
	switch t {
	case onnx.Int64:
		return ort.NewTensor(dims, values)
	case onnx.Int32:
		list := make([]int32, len(values))
		for i, x := range values {
			list[i] = int32(x)
		}
		return ort.NewTensor(dims, list)
	case onnx.Bool:
		list := make([]byte, len(values))
		for i, x := range values {
			list[i] = byte(x)
		}
		return ort.NewCustomDataTensor(dims, list, ort.TensorElementDataTypeBool)
	}
	return nil, fmt.Errorf("element type %v cannot be fed; only int64, int32 and bool can", t)
}

// floats are the numbers of a tensor. Those of 32 bits stand in the tensor's memory, others
// are written into a buffer, which is used again.
func floats(v ort.Value, buffer []float32) (list []float32, err error) {
	if t, ok := v.(*ort.Tensor[float32]); ok { // the binding's own
		return t.GetData(), nil
	}
	t, ok := v.(*ort.CustomDataTensor)
	if !ok {
		return nil, fmt.Errorf("its logits are %T", v)
	}
	data, count := t.GetData(), t.GetShape().FlattenedSize()
	switch ort.TensorElementDataType(t.DataType()) {
	case ort.TensorElementDataTypeFloat:
		return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), count), nil
	case ort.TensorElementDataTypeFloat16:
		for i := range count {
			buffer = append(buffer, float16.Frombits(binary.LittleEndian.Uint16(data[2*i:])).Float32())
		}
	case ort.TensorElementDataTypeBFloat16:
		for i := range count {
			buffer = append(buffer, math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:]))<<16))
		}
	default:
		return nil, fmt.Errorf("its logits have element type %v", t.DataType())
	}
	return buffer, nil
}

// bytesOf are the numbers of a tensor that this package made, as they stand in memory.
func bytesOf(v ort.Value) []byte { return v.(*ort.CustomDataTensor).GetData() }
