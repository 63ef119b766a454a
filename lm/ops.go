package lm

import (
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// registerOps makes the custom ops known to a session, if the model uses them. A model's
// folder is never searched for the library: it may be somebody else's.
func registerOps(so *ort.SessionOptions, model *onnx.Model, options Options) error {
	spec := 0 // that the nodes need
	for n := range model.Graph.AllNodes() {
		if n.Domain == customop.Domain {
			spec = max(spec, int(n.Int("spec_version", 1)))
		}
	}
	if spec == 0 {
		return nil
	}
	library := customop.Options{Library: options.OpsLibrary}
	if options.Require {
		return customop.Require(so, library, spec)
	}
	err := customop.Register(so, library)
	defined := slices.ContainsFunc(model.Functions, func(f *onnx.Function) bool { return f.Domain == customop.Domain })
	switch {
	case err == nil || defined && options.OpsLibrary == "":
		return nil // it runs on its fallback
	case !defined:
		return fmt.Errorf("%w (the model has no fallback for its ops, so it does not run without the library)", err)
	}
	return err
}

// byLength reports whether the frequencies of a model's ops depend on the length of a call,
// so that a prompt in pieces means something else than in one.
func byLength(model *onnx.Model) bool {
	for n := range model.Graph.AllNodes() {
		if n.Domain == customop.Domain && n.Int("trained_length", 0) > 0 {
			return true
		}
	}
	return false
}
