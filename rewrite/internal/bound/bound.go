package bound

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// maxTensor is the largest tensor, in bytes, that an evaluation may make. ONNX
// Runtime fails at once on terabytes, but allocates what the machine just has.
const maxTensor = 2 << 30

// ErrTooLarge says that an evaluation would take more memory than is allowed.
var ErrTooLarge = errors.New("too large to be evaluated")

// Elements returns the number of elements of a tensor that is to be fed. A negative
// dimension is an error, and so is a tensor of more bytes than maxTensor, at four
// bytes for each element.
func Elements(dims []int64) (int64, error) {
	n := int64(1)
	for _, d := range dims {
		if d < 0 {
			return 0, fmt.Errorf("a tensor of the shape %v would be needed", dims)
		}
		n = dim.Saturated(n, d)
	}
	if n > maxTensor/4 {
		return 0, fmt.Errorf("%w: a tensor of the shape %v would be needed, more than %d MB", ErrTooLarge, dims, maxTensor>>20)
	}
	return n, nil
}

// Check returns an error that names the first node whose output would exceed
// maxTensor when nodes, in topological order, are run on feeds.
func Check(nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor) error {
	e := NewEstimate(len(nodes))
	for _, t := range constants {
		e.Constant(t.Name, t)
	}
	for name, t := range feeds {
		e.Dims[name] = t.Dims
		if t.Len() <= maxFolded {
			e.values[name] = t.Values()
		}
	}
	for _, n := range nodes {
		if len(n.Outputs) == 0 {
			continue
		}
		if t := ir.ConstantValue(n); t != nil {
			e.Constant(n.Outputs[0], t)
			continue
		}
		dims, ok := e.Follow(n)
		if !ok {
			continue
		}
		size := 4.0
		for _, d := range dims {
			if d < 0 {
				return fmt.Errorf("node %s would make a tensor of the shape %v", ir.Label(n), dims)
			}
			size *= float64(d)
		}
		if size > maxTensor {
			return fmt.Errorf("%w: node %s would make a tensor of the shape %v, about %.0f MB; at most %d MB are evaluated", ErrTooLarge, ir.Label(n), dims, size/(1<<20), maxTensor>>20)
		}
	}
	return nil
}
