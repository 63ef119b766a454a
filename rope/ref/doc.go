// Package ref is the float64 reference of attention, the oracle that kernels,
// measurements and edits are tested against. It follows the formulas word for word:
// for every query and every key it asks whether the key is visible, finds the
// band of their distance, turns both vectors to the band's positions and takes
// the product, then the modifiers in their order: scale, bias, softcap, bias, sink.
// Documents and caches of fixed capacity, where every row has a past of its own,
// are read from the same few lines. Clarity comes before speed, and all scores of a row are stored.
//
// [RunFloat32] does the same in float32. Its distance from [Run] is what a
// plain implementation loses, and the yardstick of the project's rule: an error
// of at most twice that.
package ref
