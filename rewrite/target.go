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

// check refuses a target that is not known.
func (t Target) check() error {
	if t != "" && t != Ops && t != PlainONNX {
		return fmt.Errorf("unknown target %q; ops or onnx was expected", t)
	}
	return nil
}
