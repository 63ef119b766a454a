package bound

import (
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Estimate follows the shapes of values through nodes without running them. It knows
// the ops that sizes are computed with and those that make tensors larger.
type Estimate struct {
	Dims   map[string][]int64   // the shapes that are known, by value
	values map[string][]float64 // the contents of small values, as far as they are known
}

// maxFolded is the largest number of elements of a value whose contents are followed.
const maxFolded = 64

// NewEstimate returns an estimate that knows no value yet, with room for as many as
// some nodes make.
func NewEstimate(nodes int) *Estimate {
	return &Estimate{Dims: make(map[string][]int64, nodes), values: make(map[string][]float64, nodes)}
}

// Follow adds what is known of n's first output and returns its shape, if known.
// n's inputs must have been added before.
func (e *Estimate) Follow(n *onnx.Node) (dims []int64, ok bool) {
	if dims, ok = e.shape(n); !ok {
		return nil, false
	}
	e.Dims[n.Outputs[0]] = dims
	if count := engine.Elements(dims); count >= 0 && count <= maxFolded {
		if v, ok := e.fold(n, int(count)); ok {
			e.values[n.Outputs[0]] = v
		}
	}
	return dims, true
}

// Constant adds a constant.
func (e *Estimate) Constant(name string, t *onnx.Tensor) {
	e.Dims[name] = t.Dims
	if t.Len() <= maxFolded {
		if v, err := t.Float64s(); err == nil {
			e.values[name] = v
		}
	}
}

// list returns the contents of n's input i as integers, if they are known.
func (e *Estimate) list(n *onnx.Node, i int) ([]int64, bool) {
	if i >= len(n.Inputs) {
		return nil, false
	}
	v, ok := e.values[n.Inputs[i]]
	out := make([]int64, len(v))
	for k, x := range v {
		out[k] = int64(x)
	}
	return out, ok
}
