package lm

import (
	"os"
	"path/filepath"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// registerOps makes the custom ops known to a session, if the model uses them.
func registerOps(so *ort.SessionOptions, model *onnx.Model, library string) error {
	if model.Opset(customop.Domain) == 0 {
		return nil
	}
	return customop.Register(so, customop.Options{Library: library})
}

// Built is a file that make build left in the source tree that this program was
// compiled from; "" where there is none, or where an environment variable names
// another one. The tree is not the working directory, in which a model's folder
// may bring a build/ of its own.
func Built(variable string, inBuild ...string) string {
	_, self, _, _ := runtime.Caller(0)
	path := filepath.Join(append([]string{filepath.Dir(self), "..", "build"}, inBuild...)...)
	if !filepath.IsAbs(path) || os.Getenv(variable) != "" { // not absolute with -trimpath
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
