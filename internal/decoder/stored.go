package decoder

import (
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// storedAs returns a cache of float32 as a cache of another element type would give it back: float16,
// bfloat16, or int8 with a scale for each row, as the op has them. It is what a model computes with
// whose caches alone have that type.
func storedAs(t engine.Tensor, typ string) engine.Tensor {
	if t.Type != onnx.Float || len(t.Dims) == 0 {
		return t
	}
	values := slices.Clone(t.Float32s())
	switch size := int(t.Dims[len(t.Dims)-1]); typ {
	case "float16":
		for i, x := range values {
			values[i] = float16.Fromfloat32(x).Float32()
		}
	case "bfloat16":
		for i, x := range values {
			bits := math.Float32bits(x)
			values[i] = math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
		}
	case "int8":
		for row := range slices.Chunk(values, size) {
			quantize(row)
		}
	}
	return engine.Float32s(values, t.Dims...)
}

// quantize rounds a row to integers of its own scale, the largest of which is 127.
func quantize(row []float32) {
	largest := float32(0)
	for _, x := range row {
		largest = max(largest, float32(math.Abs(float64(x))))
	}
	scale := largest / 127
	for i, x := range row {
		if scale > 0 {
			row[i] = float32(math.RoundToEven(float64(x/scale))) * scale
		}
	}
}
