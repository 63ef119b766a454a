package rewrite

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// loadable refuses a model that no runtime loads: pieces of it could be measured
// all the same, and "proven equal" would be said of what cannot run. Where
// weights may be missing it returns a warning about the first that is.
func loadable(m *onnx.Model, opts Options) (warnings []string, err error) {
	if err := m.CheckValues(); err != nil {
		return nil, fmt.Errorf("%w; no runtime loads it, export it again", err)
	}
	for err := range m.UnreadableData() {
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w; no runtime loads the model, copy or export it again", err)
		case !opts.WithoutWeights:
			return nil, fmt.Errorf("%w; no runtime loads the model without it. Put the file there; rope-rewrite inspect, or Options.WithoutWeights in Go, looks at a model without its weights", err)
		case warnings == nil:
			warnings = []string{fmt.Sprintf("%v; the model can be looked at without it, but nothing runs it like this", err)}
		}
	}
	return warnings, nil
}
