// Package mutant makes look-alikes: real exports changed in one to three places, in an op, an
// edge, a constant, an attribute or a type, for all readers or for one. Each is judged by ONNX
// Runtime: what it computes at tokens that are not padding, in one call, with padding and after
// a past, must be the same before and after a rewrite without methods.
//
//	m, err := onnx.Open("model.onnx")
//	changed, ok := mutant.Change(m, rng)             // changed.What is "Add_12 (Add): Sub in its place"
//	judge := mutant.Judge{Engine: eng, Worker: worker}
//	verdict, why, err := judge.Judge(ctx, m)
package mutant
