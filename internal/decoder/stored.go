package decoder

import (
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// storedAs returns a cache of float32 as a cache of another element type would give it back: float16,
// bfloat16, or int8 with a scale for each row. It is what a model computes with whose caches alone have
// that type.
func storedAs(t engine.Tensor, typ onnx.DataType) engine.Tensor {
	if t.Type != onnx.Float || len(t.Dims) == 0 || typ == 0 {
		return t
	}
	size := int(t.Dims[len(t.Dims)-1])
	steps, scales := engine.StoredRows(t.Float32s(), size, typ)
	return engine.Float32s(engine.ReadRows(steps, scales, size), t.Dims...)
}
