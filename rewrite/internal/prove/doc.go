// Package prove tests that the fused op computes what a site of the model does.
//
// It takes a site with its dimensions and what was measured of it, and runs three things
// on the same random inputs: the original site as it is in the model, the same site
// in float64, and the op as package lower writes it. It gives a Proof with the errors of
// the original and of the op against float64, or a graph.Refusal that says with which
// sizes which result was off by how much.
//
// The rule: the op's error may be twice that of the original, or of a plain
// implementation in the same element type where that is larger. It is applied to the root
// mean square of each trial and to the largest error of all trials of one magnitude. The
// trials are chosen so that they reach every part of the op: prefill, decode, batches,
// padding, windows, large positions.
//
// Start with Site in prove.go and Compare in compare.go. trials.go and lengthtracked.go
// say what is tried, feeds.go makes the inputs, errors.go holds the rule, plain.go the
// plain rotation, byreach.go frequencies that a graph computes in each call. rows.go is about queries of padding that see no key: the op gives zeros
// for them and models give other numbers, so they are judged apart, and package paddingreaders
// finds out whether the model needs them.
package prove
