// Package onnxattention reads ONNX's Attention (opset 23 and later) as the
// primitive nodes that its specification describes:
//
//	scores = (query · keyᵀ) · scale
//	scores = softcap · tanh(scores / softcap)      where softcap > 0
//	scores = scores + mask                         0 and −∞ for a mask of truth values
//	scores = scores + causal                       −∞ for keys j > i + past
//	output = softmax(scores) · value               zeros for a query that sees no key
//
// with key and value those of past_key and past_value followed by the new ones,
// each head repeated for its group, and 3-D inputs split into q_num_heads and
// kv_num_heads.
//
// Refused are an output qk_matmul_output, an input nonpad_kv_seqlen (opset 24),
// a softmax_precision below float32, attributes that came later (the windows of
// opset 25), and head counts and scales that make no sense.
package onnxattention
