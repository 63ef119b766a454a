// Package msrotary reads com.microsoft RotaryEmbedding as primitive nodes. The
// first channels of each head, twice as many as cos_cache and sin_cache have
// columns, are split into x₁ and x₂ (halves, or neighbours where interleaved)
// and become
//
//	x₁·cos − x₂·sin   and   x₂·cos + x₁·sin
//
// with the rows of the tables that position_ids [batch, length] names; a
// position_ids of one element is the position of the first token, from which
// the others count on. The input is [batch, length, heads · channels], where
// num_heads, or the tables' width, tells the heads apart, or [batch, heads,
// length, channels].
//
// Refused are a scale other than 1 (ONNX Runtime's kernel ignores it on the
// CPU), packed batches, tables that are not constant, and heads and widths that
// make no sense.
package msrotary
