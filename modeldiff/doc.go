// Package modeldiff says how two models differ: methods and attention layers, nodes by
// op, inputs and outputs, weights, bytes.
//
// Start with Run: its Report lists what differs, and says Same if nothing does. Weights are
// compared by digest and read a piece at a time; those that are the same bytes of one file are
// not read at all.
//
//	report, err := modeldiff.Run(ctx, "a.onnx", "b.onnx", modeldiff.Options{})
//	for _, d := range report.Of(modeldiff.Attention) { … } // what attention layers compute
//
// CompareGraphs, CompareInterfaces and CompareRest find the first place in which a file is not the expected one. They compare
// canonical forms: canonical.go has what counts, compare.go names what differs, claims.go is about types and shapes that
// a file tells, files.go about inputs, outputs and functions.
package modeldiff
