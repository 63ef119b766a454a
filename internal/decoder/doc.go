// Package decoder feeds a language model and carries its key-value cache from
// call to call: what validating and comparing with goldens need. Inputs are
// known by the names that exporters use (input_ids, attention_mask,
// position_ids), caches by their shape, and what the rewriter adds (document
// ids, the length of a fixed cache) by where its op reads it. A model without
// a cache is fed whole sequences. One that counts the tokens of its rows
// (GroupQueryAttention, as the ORT-GenAI builder writes it) has no position_ids
// and wants padding on the right of the first call.
//
//	d, err := decoder.Open(ctx, eng, "model.onnx")
//	logits, cache, err := d.Run(ctx, decoder.Step{Batch: 1, Length: 3, IDs: ids, Mask: mask, Positions: positions})
package decoder
