package rewrite

import (
	"fmt"
)

// Target says what sites become.
type Target string

const (
	// Ops replaces a site by the fused op. It is the default.
	Ops Target = "ops"
	// PlainONNX changes constants of the model's own rotation, and hides keys
	// before its softmax, so that the result runs without the op library. It
	// serves methods that change frequencies, gain and visibility alone.
	PlainONNX Target = "onnx"
)

// newBackend returns the backend of a target. A new target is one line here.
func (t Target) newBackend() (backend, error) {
	switch t {
	case "", Ops:
		return &opsBackend{}, nil
	case PlainONNX:
		return &onnxBackend{}, nil
	}
	return nil, fmt.Errorf("unknown target %q; ops or onnx was expected", t)
}
