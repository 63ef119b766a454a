// Package onnxattention reads ONNX's Attention (opset 23 and later) as the
// primitive nodes that its specification describes:
//
//	scores = (query · keyᵀ) · scale
//	scores = softcap · tanh(scores / softcap)      where softcap > 0
//	scores = scores + mask                         0 and −∞ for a mask of truth values
//	scores = scores + filled                       −∞ for keys j ≥ nonpad_kv_seqlen of the row
//	scores = scores + causal                       −∞ for keys j > i + past
//	output = softmax(scores) · value               zeros for a query that sees no key
//
// with key and value those of past_key and past_value followed by the new ones,
// each head repeated for its group, and 3-D inputs split into q_num_heads and
// kv_num_heads. With nonpad_kv_seqlen (opset 24), for a cache outside the op, past is
// nonpad_kv_seqlen − length in each row.
//
// Refused are an output qk_matmul_output, nonpad_kv_seqlen beside past_key,
// a softmax_precision below float32, attributes that came later (the windows of
// opset 25), and head counts and scales that make no sense.
package onnxattention
