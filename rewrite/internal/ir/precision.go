package ir

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Snapped returns the nearest number of a 16-bit type p where a factor that was
// measured in p is so close to it that it can hardly be another number. Any other
// factor, and every factor in float32, is returned as it is.
func Snapped(factor float64, p rope.Precision) float64 {
	if near := p.Round(factor); p != rope.Float32 && math.Abs(near-factor) < p.Epsilon()/16*math.Abs(factor) {
		return near
	}
	return factor
}

const (
	// Float32eps is the distance from 1 to the next float32.
	Float32eps = 1.0 / (1 << 23)
	// TopPosition is the largest position at which a rotation is measured. It is a
	// power of two: at positions p = 2^k the angle p·ω is exact in float32, and the
	// angle at the last one gives ω to float32 accuracy.
	TopPosition = 1 << 20
	// LargestHalf is the largest power of two in float16.
	LargestHalf = 1 << 15
)

// Precision returns the precision of an element type. For double it is float32's:
// nothing here has to tell them apart.
func Precision(t onnx.DataType) rope.Precision {
	switch t {
	case onnx.Float16:
		return rope.Float16
	case onnx.BFloat16:
		return rope.BFloat16
	}
	return rope.Float32
}

// Is16Bit reports whether the type is a floating-point type of 16 bits.
func Is16Bit(t onnx.DataType) bool { return Precision(t) != rope.Float32 }

// Round rounds values, in place, to numbers of an element type.
func Round(values []float32, t onnx.DataType) {
	if Is16Bit(t) {
		for i, x := range values {
			values[i] = float32(Precision(t).Round(float64(x)))
		}
	}
}

// IsFloat reports whether the type is a floating-point type.
func IsFloat(t onnx.DataType) bool {
	switch t {
	case onnx.Float, onnx.Double, onnx.Float16, onnx.BFloat16:
		return true
	}
	return false
}
