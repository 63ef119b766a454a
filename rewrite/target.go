package rewrite

import (
	"cmp"
	"fmt"
	"strings"
)

// Target says what sites become.
type Target string

const (
	// Ops replaces a site by the fused op. It is the default.
	Ops Target = "ops"
	// PlainONNX writes standard ONNX operators alone, so that the result runs without
	// the op library and in runtimes that know no functions. Methods that change
	// frequencies, gain and visibility alone go into the model's own nodes: other
	// constants of its rotation, keys hidden before its softmax. For others the op's body
	// takes the site's place.
	PlainONNX Target = "onnx"
)

// backends lists the targets, the default one first. A new target is one line here.
func backends() []namedBackend {
	return []namedBackend{{Ops, &opsBackend{}}, {PlainONNX, &onnxBackend{}}}
}

type namedBackend struct {
	target Target
	backend
}

// Targets lists the targets, the default one first.
func Targets() []Target {
	var list []Target
	for _, b := range backends() {
		list = append(list, b.target)
	}
	return list
}

// newBackend returns the backend of a target.
func (t Target) newBackend() (backend, error) {
	var names []string
	for _, b := range backends() {
		if b.target == cmp.Or(t, Ops) {
			return b.backend, nil
		}
		names = append(names, string(b.target))
	}
	return nil, fmt.Errorf("unknown target %q; %s was expected", t, strings.Join(names, " or "))
}
