// Package engine evaluates ONNX models with ONNX Runtime.
//
// A rewriter runs pieces of other people's models, and ONNX Runtime can kill
// its own process on hostile graphs. So there are two engines of one
// interface: Local runs in this process, and Worker runs in a child process
// whose memory and time are bounded and which is started anew when it dies.
//
//	eng, err := engine.NewWorker(engine.Config{Runtime: "libonnxruntime.so"}, os.Args[0])
//	session, err := eng.Load(ctx, engine.Model{Bytes: model})
//	outputs, err := session.Run(ctx, feeds, []string{"logits"})
package engine
