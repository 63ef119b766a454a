// Package onnxrotary reads ONNX's RotaryEmbedding (opset 23) as the primitive
// nodes of its specification. The channels of a head, or the first
// rotary_embedding_dim of them, are split into x₁ and x₂ (halves, or even and
// odd where interleaved), and become
//
//	x₁·cos − x₂·sin   and   x₁·sin + x₂·cos
//
// with cos and sin given for each token, or gathered from tables by
// position_ids. Where cos and sin have one row for the whole batch, they serve
// every row of it, as exporters mean it; ONNX Runtime runs that at batch 1 only.
package onnxrotary
