package lm

import (
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
