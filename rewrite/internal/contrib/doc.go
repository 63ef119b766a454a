// Package contrib writes the op RotaryAttention as ONNX Runtime's own fused attention,
// com.microsoft.GroupQueryAttention, for hosts that have a fast kernel of it and none of
// the op: CUDA, WebGPU, DirectML.
//
//	err := contrib.Refused(op, of, runtime)     // why an op does not fit, nil where it does
//	err := contrib.Replace(m, nodes, runtime)   // writes every op of a model so
//
// GroupQueryAttention rotates queries and keys by tables of cosines and sines. The tables
// hold the op's frequencies and its gain, so every scaling whose frequencies are the same
// in all calls fits; so do a window, a softcap and sinks, as far as the version of ONNX
// Runtime has them. Position maps, documents, raw caches and temperatures do not.
//
// Its input contract is narrower than the op's: a token's position is its index in its row,
// and rows have no padding on the left. A growing cache gets nodes that end the run with an
// error where a mask hides a token or a position is another; otherwise such input would
// give wrong results without a word. A cache that counts its tokens (GenAI's convention)
// keeps that convention.
//
// Its caches may be int8 with fixed scales, which somebody has to measure. Unlike with the op, the tokens of
// a call then read each other as the cache holds them, rounded.
//
// Start with fits.go, which says what fits, and replace.go, which writes a node. inputs.go
// writes the lengths and what guards them, tables.go the tables, scales.go the scales of caches.
package contrib
