// Package validate says whether a rewritten model computes what it should: the same as the
// original, or the original with the methods that its record names. A good Verdict is only for a file that is, node by
// node, what the original gives when it is rewritten by the record again.
//
// Start with Run. It runs both models on the same tokens, in one call, in chunks and token by
// token, and compares their logits. It compares the graph of the patched model, node by node and
// weight by weight, with that of the original rewritten anew as the record says, and each
// attention layer with a float64 reference. The report's Verdict sums that up.
//
//	report, err := validate.Run(ctx, "model.onnx", "model.rope.onnx", validate.Options{})
//	if err == nil && report.Verdict.Holds() { … }
//
// Padding is on the left of one row; padded queries are not compared, their output is not
// defined. A patched model with a cache of fixed capacity is also run with rows
// of different length, each at its own place in the cache, against the
// original's padded rows. One with a mask over documents gets one document per
// row, where the mask must change nothing.
//
// validate.go decides what is fed, logits.go runs the models, rebuild.go and again.go rewrite the
// original once more, confirm.go compares that with the file, claim.go compares layers, verdict.go has the rules.
package validate
