package rewrite

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// InFloat64 returns a model that computes what m does in float64: what models are
// held against, and where two of them are compared whose float32 roundings alone
// may differ (a mixture of experts magnifies them). The angles of rotations keep
// their float32 rounding, which belongs to a model's meaning. What ONNX Runtime
// has no kernel in float64 for computes in float32: Gelu, Softplus, fused norms and
// activations, and this project's own op. Inputs and outputs that were floats
// become doubles.
func InFloat64(m *onnx.Model) (*onnx.Model, error) { return eval.InFloat64(m) }
