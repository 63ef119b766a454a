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
	// Contrib replaces a site by ONNX Runtime's own com.microsoft.GroupQueryAttention, for
	// hosts that have a fast kernel of that and none of the op. It serves what that op can
	// compute, on rows without padding on the left. "contrib:onnxruntime=1.22" names the
	// oldest version that is to run the result.
	Contrib Target = "contrib"
)

// backends lists the targets, the default one first. A new target is one line here.
func backends() []namedBackend {
	return []namedBackend{{Ops, &opsBackend{}}, {PlainONNX, &onnxBackend{}}, {Contrib, &contribBackend{}}}
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

// Name is the target without the setting that may stand behind it: Contrib for
// "contrib:onnxruntime=1.22".
func (t Target) Name() Target {
	name, _, _ := strings.Cut(string(t), ":")
	return Target(name)
}

// newBackend returns the backend of a target.
func (t Target) newBackend() (backend, error) {
	var names []string
	name := cmp.Or(t.Name(), Ops)
	for _, b := range backends() {
		if b.target == name && (t.Name() == t || name == Contrib) {
			return b.backend, nil
		}
		names = append(names, string(b.target))
	}
	return nil, fmt.Errorf("unknown target %q; %s was expected", t, strings.Join(names, " or "))
}
