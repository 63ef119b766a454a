// Package groupquery reads com.microsoft GroupQueryAttention, the attention of
// ONNX Runtime GenAI's model builder, as primitive nodes. It computes, as
// ONNX Runtime 1.31 does on the CPU (its documentation leaves much of
// this open; the tests hold it against the kernel):
//
//   - query [batch, length, heads · channels], key and value the same with
//     kv_num_heads; or all three side by side in query. Head h of the query uses
//     kv head h / (num_heads / kv_num_heads).
//   - Row b holds seqlens_k[b] + 1 tokens after the call. Padding stands on the
//     right: a token's index is its place in its row, and is its position too.
//   - A call whose length is total_sequence_length is a first one: its rows
//     start at index 0. Any other call starts at seqlens_k[b] + 1 − length, and
//     one with several tokens has one row.
//   - do_rotary rotates query and key by row p of cos_cache and sin_cache for
//     position p, in halves or neighbours, as many channels as the tables have
//     columns twice over.
//   - Past and present are [batch, kv_num_heads, rows, channels] and may be one
//     buffer with room to spare; a present has max(past's rows,
//     total_sequence_length) rows. Rows behind a row's tokens are never used.
//   - A query sees the keys at or before its index, with local_window_size n
//     the last n of them. (ONNX Runtime 1.23 and before show one more; with them
//     a site with a window is not proven.)
//   - The scores are multiplied by scale and bent by softcap.
//   - head_sink has a logit for each head that takes part in the softmax beside
//     the keys; smooth_softmax means logits of 0. If both are given, head_sink is used.
//
// [Adapter] gives two forms. Expand is for rows without padding whose past is
// exactly full, and serves for measuring; Define is all of the above, the
// reference of the proof, in which seqlens_k and total_sequence_length are fed.
//
// Refused are position_ids, attention_bias, query_seqlens, quantised caches, windowed
// caches, the norm of query and key, bidirectional attention, scores as an output, calls
// without a cache, keys and values that are not as many as the query's tokens (which read
// another layer's cache), and attributes and tables on which ONNX Runtime would end its
// process. Each has a reason of its own, and so has what a later version may add.
package groupquery
