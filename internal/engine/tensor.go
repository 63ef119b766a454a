package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Tensor is a dense value; Data is row-major and little-endian.
type Tensor struct {
	Type onnx.DataType
	Dims []int64
	Data []byte
}

// Len returns the number of elements, the product of Dims.
func (t Tensor) Len() int64 { return Elements(t.Dims) }

// Elements returns the product of dims.
func Elements(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// Float32s makes a float tensor of v. It holds v itself, for there can be millions.
func Float32s(v []float32, dims ...int64) Tensor {
	return Tensor{Type: onnx.Float, Dims: dims, Data: bytesOf(v)}
}

// Float64s makes a double tensor of v. It holds v itself.
func Float64s(v []float64, dims ...int64) Tensor {
	return Tensor{Type: onnx.Double, Dims: dims, Data: bytesOf(v)}
}

// Int64s makes an int64 tensor of v. It holds v itself.
func Int64s(v []int64, dims ...int64) Tensor {
	return Tensor{Type: onnx.Int64, Dims: dims, Data: bytesOf(v)}
}

// bytesOf returns the bytes of v, which the two share. Like ONNX Runtime, this needs a
// little-endian machine.
func bytesOf[E any](v []E) []byte {
	if len(v) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

// elementsOf returns the elements that data holds, which the two share.
func elementsOf[E any](data []byte) []E {
	n := len(data) / int(unsafe.Sizeof(*new(E)))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*E)(unsafe.Pointer(&data[0])), n)
}

// Integers makes a tensor of v in the given type: an integer type, bool or a float type.
func Integers(t onnx.DataType, v []int64, dims ...int64) (Tensor, error) {
	out := Tensor{Type: t, Dims: dims}
	if t == onnx.Int64 || t == onnx.Uint64 { // most are
		out.Data = slices.Clone(bytesOf(v))
		return out, nil
	}
	for _, x := range v {
		switch t {
		case onnx.Int32, onnx.Uint32:
			out.Data = binary.LittleEndian.AppendUint32(out.Data, uint32(x))
		case onnx.Int16, onnx.Uint16:
			out.Data = binary.LittleEndian.AppendUint16(out.Data, uint16(x))
		case onnx.Bool, onnx.Int8, onnx.Uint8:
			out.Data = append(out.Data, byte(x))
		case onnx.Float:
			out.Data = binary.LittleEndian.AppendUint32(out.Data, math.Float32bits(float32(x)))
		case onnx.Float16:
			out.Data = binary.LittleEndian.AppendUint16(out.Data, float16.Fromfloat32(float32(x)).Bits())
		case onnx.BFloat16:
			out.Data = binary.LittleEndian.AppendUint16(out.Data, bfloat16(float32(x)))
		case onnx.Double:
			out.Data = binary.LittleEndian.AppendUint64(out.Data, math.Float64bits(float64(x)))
		default:
			return Tensor{}, fmt.Errorf("an input of type %v cannot take integers", t)
		}
	}
	return out, nil
}

// bfloat16 rounds a number that is not NaN to nearest, to even where two are
// equally near.
func bfloat16(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// Float32s returns the elements of a float tensor, which the two share.
func (t Tensor) Float32s() []float32 { return elementsOf[float32](t.Data) }

// Values returns the elements as float64, from a tensor of floats or integers.
func (t Tensor) Values() []float64 {
	size := t.Type.Size()
	if size == 0 {
		return nil
	}
	out := make([]float64, len(t.Data)/size)
	if t.Type == onnx.Float { // most are, and there can be millions
		for i, x := range t.Float32s() {
			out[i] = float64(x)
		}
		return out
	}
	for i := range out {
		b := t.Data[i*size:]
		switch t.Type {
		case onnx.Float16:
			out[i] = float64(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32())
		case onnx.BFloat16:
			out[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		case onnx.Double:
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case onnx.Int64, onnx.Uint64:
			out[i] = float64(int64(binary.LittleEndian.Uint64(b)))
		case onnx.Int32:
			out[i] = float64(int32(binary.LittleEndian.Uint32(b)))
		case onnx.Int8:
			out[i] = float64(int8(b[0]))
		default:
			out[i] = float64(b[0])
		}
	}
	return out
}
