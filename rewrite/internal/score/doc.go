// Package score measures what a graph does to attention scores before their softmax:
// scale, softcap, mask, sinks, and a bias where the mask is more than these.
//
// A Scorer takes a loaded piece from the scores to the softmax's input. Measure feeds
// chosen scores, with and without padding, and gives a Fit: a curve that visible scores
// follow and a rope.Mask (causal, window, padding, bias). Every Fit is compared with the
// piece on random scores and padding, at several sizes, and with up to 131,072 keys. In a
// model without a cache, whose mask has length · length elements, ChooseRows lets the
// Scorer evaluate a few rows of long calls; the mask itself is package eval's ByRows.
//
// Where no mask of rope.Mask agrees, Measure tries a bias by distance, rope.Distance
// (distance.go), and then any bias: what the graph adds to the scores is kept as a
// sub-graph of the model. It refuses what is none of these, with an error
// that names the head, query and key at which the graph and the best Fit differ.
//
// Hidden states that are added to the scores are fed like these: a Fit then has a bias,
// whatever they are, and says of the mask beside them what no such number changes (bias.go).
//
// It stands above eval, bisect and site, below measure. Start with Scorer (scorer.go) and
// Measure (measure.go), then mask.go and curve.go for what is read from the results, and
// fit.go for how they are compared.
package score
