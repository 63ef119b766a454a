// Package paddingreaders finds out whether a model needs what its attention layers give for padding.
//
// A query of a padded token may see no key. Models give it a uniform average, zeros or
// NaN; the op gives zeros. That is right as long as no other token depends on it: as a
// rule the next attention hides padded keys. But a mask may be soft, a softmax may go
// over another axis, or the model may pool over all tokens.
//
// So it is tried. The package takes the sites for which the proof saw a difference
// (prove.Proof.PaddedDiffer), and runs a copy of the model without its weights, the
// stand-in. In it the outputs of such queries are zeros in one run and other numbers in
// another. The model's output for tokens that are not padding must be the same in both.
// As a control, other numbers for all queries must make a difference.
//
// It gives the sites on which other tokens do depend; they are not rewritten. It
// returns an error where the stand-in does not run or the control fails, which is taken
// as if all did.
//
// Start with Culprits in paddingreaders.go. standin.go makes the copy of the model, feeds.go its
// inputs, compare.go compares its outputs. It uses package prove and is called by the
// facade after all sites are proven.
package paddingreaders
