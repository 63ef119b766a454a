package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Floats returns the elements of a tensor of float, double, half, bfloat16,
// bool or
// (other than uint64) integer type as float32, rounded where that does not hold them.
func (t *Tensor) Floats() ([]float32, error) {
	return convert(t, func(v float64) float32 { return float32(v) }, func(v int64) float32 { return float32(v) })
}

// Float64s returns the elements of a tensor of float, double, half, bfloat16,
// bool or
// (other than uint64) integer type as float64, rounded where that does not hold them.
func (t *Tensor) Float64s() ([]float64, error) {
	return convert(t, func(v float64) float64 { return v }, func(v int64) float64 { return float64(v) })
}

// Int64s returns the elements of a tensor of bool or integer type, other than
// uint64.
func (t *Tensor) Int64s() ([]int64, error) {
	return convert(t, nil, func(v int64) int64 { return v })
}

// convert decodes the elements; fromFloat is nil where floats are no answer.
func convert[T any](t *Tensor, fromFloat func(float64) T, fromInt func(int64) T) ([]T, error) {
	float, integer := floatDecoders[t.Type], intDecoders[t.Type]
	if integer == nil && (float == nil || fromFloat == nil) {
		return nil, fmt.Errorf("tensor %q: %s elements cannot be converted to numbers of that kind", short.Name(t.Name), t.Type)
	}
	b, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	width := t.Type.Size()
	out := make([]T, t.Len())
	for i := range out {
		if integer != nil {
			out[i] = fromInt(integer(b[i*width:]))
		} else {
			out[i] = fromFloat(float(b[i*width:]))
		}
	}
	return out, nil
}

var little = binary.LittleEndian

// floatDecoders read one element of a floating-point type.
var floatDecoders = map[DataType]func([]byte) float64{
	Float:    func(b []byte) float64 { return float64(math.Float32frombits(little.Uint32(b))) },
	Double:   func(b []byte) float64 { return math.Float64frombits(little.Uint64(b)) },
	Float16:  func(b []byte) float64 { return float64(float16.Frombits(little.Uint16(b)).Float32()) },
	BFloat16: func(b []byte) float64 { return float64(math.Float32frombits(uint32(little.Uint16(b)) << 16)) },
}

// intDecoders read one element of an integer type.
var intDecoders = map[DataType]func([]byte) int64{
	Uint8:  func(b []byte) int64 { return int64(b[0]) },
	Bool:   func(b []byte) int64 { return int64(b[0]) },
	Int8:   func(b []byte) int64 { return int64(int8(b[0])) },
	Uint16: func(b []byte) int64 { return int64(little.Uint16(b)) },
	Int16:  func(b []byte) int64 { return int64(int16(little.Uint16(b))) },
	Uint32: func(b []byte) int64 { return int64(little.Uint32(b)) },
	Int32:  func(b []byte) int64 { return int64(int32(little.Uint32(b))) },
	Int64:  func(b []byte) int64 { return int64(little.Uint64(b)) },
}
