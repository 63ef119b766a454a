package engine

import (
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// StoredRows is rows of size numbers as a cache of an element type holds them: numbers of float16 or
// bfloat16, or for int8 integers and the scale of each row, by which the largest is 127, as the op
// RotaryAttention makes them. scales are nil for other types, which leave the rows as they are.
func StoredRows(rows []float32, size int, t onnx.DataType) (steps, scales []float32) {
	steps = slices.Clone(rows)
	switch t {
	case onnx.Float16:
		for i, x := range steps {
			steps[i] = float16.Fromfloat32(x).Float32()
		}
	case onnx.BFloat16:
		for i, x := range steps {
			steps[i] = math.Float32frombits(uint32(bfloat16(x)) << 16)
		}
	case onnx.Int8:
		scales = []float32{} // of no row, too
		for row := range slices.Chunk(steps, size) {
			largest := float32(0)
			for _, x := range row {
				largest = max(largest, float32(math.Abs(float64(x))))
			}
			scale := largest / 127
			scales = append(scales, scale)
			for i := range row {
				if scale > 0 {
					row[i] = float32(math.RoundToEven(float64(row[i] / scale)))
				}
			}
		}
	}
	return steps, scales
}

// ReadRows is rows as they are read from such a cache.
func ReadRows(steps, scales []float32, size int) []float32 {
	out := slices.Clone(steps)
	for i := range out {
		if scales != nil {
			out[i] *= scales[i/size]
		}
	}
	return out
}

// ScaledValues returns the elements of rows times the scale of each row, [..., 1]. Scales without data
// leave them as they are.
func (t Tensor) ScaledValues(scales Tensor) []float64 {
	values := t.Values()
	if scales.Data == nil {
		return values
	}
	of, size := scales.Values(), int(t.Dims[len(t.Dims)-1])
	for i := range values {
		values[i] *= of[i/size]
	}
	return values
}
