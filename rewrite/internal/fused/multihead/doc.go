// Package multihead reads com.microsoft MultiHeadAttention as primitive nodes.
// It computes, as ONNX Runtime 1.31 does on the CPU:
//
//   - query [batch, length, heads · channels]; key and value the same, or
//     [batch, heads, keys, channels]. Each head has a key head of its own.
//   - bias [query's, key's and value's width together] is added to the three.
//   - past and present are [batch, heads, rows, channels]: new keys and values
//     are appended to the past ones.
//   - The scores are multiplied by scale (1/√channels), attention_bias
//     [batch or 1, heads or 1, length, keys] is added, and where
//     key_padding_mask, [batch, keys] or [batch, length, keys], is 0
//     mask_filter_value (−10,000).
//   - With unidirectional set a query sees the keys up to its own index, which
//     follows the past; the last query sees every key.
//
// Refused are packed queries, keys and values, and caches of a length that is an
// input (past_sequence_length, cache_indirection), which ONNX Runtime's CPU
// kernel does not run or reads differently; masks that count keys; scores
// as an output; and attributes that make no sense.
package multihead
