// Package customop is the Go side of the project's ONNX Runtime custom op: its
// specification, the nodes written from it, and the way to the library that
// computes it.
//
// RotaryAttentionSpec and RotarySpec are the specifications. The kernels' header, the
// node builders RotaryAttention and Rotary and docs/ops.md are generated from them.
//
// A program that runs a patched model needs two shared libraries: ONNX Runtime
// itself and the op library, librope_ops. InitRuntime and Register find both,
// check that they fit, and say in one sentence what to do when they do not:
//
//	if err := customop.InitRuntime(""); err != nil { ... }
//	options, err := onnxruntime_go.NewSessionOptions()
//	err = customop.Register(options, customop.Options{})
//	session, err := onnxruntime_go.NewDynamicAdvancedSession("model.rope.onnx", inputs, outputs, options)
//
// The package knows neither ONNX files nor rotary mathematics.
package customop

//go:generate go run ../cmd/dev/genspec -root ..
