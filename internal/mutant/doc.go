// Package mutant makes look-alikes: real exports with one place changed, in an
// op, an input, a constant or an attribute. Each is judged by ONNX Runtime: what
// it computes at tokens that are not padding, in one call, with padding and after
// a past, must be the same before and after a rewrite without methods.
//
//	m, err := onnx.Open("model.onnx")
//	what, ok := mutant.Change(m, rng)              // "Add_12: Sub in place of Add"
//	verdict, why, err := mutant.Judge(ctx, eng, m, folder, worker)
package mutant
