package rewrite

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// FindLibraries looks for ONNX Runtime and for the op library, and returns the
// options with their paths. Rewrite does so before anything else; a program may
// do it before it opens a model. The error names what is missing, both where
// both are, and says what to do.
func (o Options) FindLibraries() (Options, error) {
	runtime, runtimeErr := o.Runtime, error(nil)
	if len(o.Worker) > 0 {
		runtime, runtimeErr = customop.FindRuntime(o.Runtime)
	} else { // this process may have loaded one from elsewhere already
		runtimeErr = customop.InitRuntime(o.Runtime)
	}
	library, libraryErr := customop.FindLibrary(customop.Options{Library: o.Library})
	switch {
	case runtimeErr != nil && libraryErr != nil:
		return o, fmt.Errorf("%w; and %w", runtimeErr, libraryErr)
	case runtimeErr != nil:
		return o, runtimeErr
	case libraryErr != nil:
		return o, libraryErr
	}
	o.Runtime, o.Library = runtime, library
	return o, nil
}
