package ir

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Snapped returns the number of a 16-bit type that a factor measured in it can
// hardly differ from; any other factor stays as it is.
func Snapped(factor float64, p rope.Precision) float64 {
	if near := p.Round(factor); p != rope.Float32 && math.Abs(near-factor) < p.Epsilon()/16*math.Abs(factor) {
		return near
	}
	return factor
}

const (
	Float32eps = 1.0 / (1 << 23)
	// TopPosition is a power of two: positions 2^k make p·ω exact in float32,
	// and the angle at the last one gives ω to float32 accuracy.
	TopPosition = 1 << 20
	LargestHalf = 1 << 15 // the largest power of two in float16
)

// Precision returns the numbers of an element type; those of doubles are not
// told from float32's.
func Precision(t onnx.DataType) rope.Precision {
	switch t {
	case onnx.Float16:
		return rope.Float16
	case onnx.BFloat16:
		return rope.BFloat16
	}
	return rope.Float32
}

// Short reports whether numbers of the type have 16 bits.
func Short(t onnx.DataType) bool { return Precision(t) != rope.Float32 }

// Round rounds values to an element type.
func Round(values []float32, t onnx.DataType) {
	if Short(t) {
		for i, x := range values {
			values[i] = float32(Precision(t).Round(float64(x)))
		}
	}
}
