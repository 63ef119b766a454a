// Package capture returns what every rotary attention layer of a model reads and gives on given
// tokens: query, key and value before the rotation, the output, and the rope.Attention that
// says what the layer computes between them.
//
// A model that rope-rewrite wrote has all of that at its RotaryAttention nodes. Another
// one is rewritten in memory first, without a method, so that its layers become such nodes.
// What these nodes read and give is then given out of the model as well, and the model runs
// as it would otherwise. Layers that cannot be rewritten are named in Model.Skipped.
//
//	m, err := capture.Open(ctx, "model.onnx", capture.Options{})
//	run, err := m.Run(ctx, capture.Tokens(1, 2, 3))
//	for _, layer := range run.Layers {
//		result, err := ref.Run(layer.Problem) // result.Output is layer.Output, but for rounding
//	}
//
// Layer holds a ref.Problem: the reference runs what was captured as it is. open.go makes the
// model, run.go runs it, problem.go brings what it gave to the reference's form.
package capture
