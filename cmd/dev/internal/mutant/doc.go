// Package mutant makes look-alikes: real exports changed in one to three places, in an op, an
// edge, a constant, an attribute or a type, for all readers or for one. Each is judged by ONNX
// Runtime: what it computes at tokens that are not padding, in one call, with padding and after
// a past, must be the same before and after a rewrite without methods.
//
//	m, err := onnx.Open("model.onnx")
//	what, ok := mutant.Change(m, rng)              // "Add_12: Sub in place of Add"
//	verdict, why, err := mutant.Judge(ctx, eng, m, folder, worker)
package mutant
