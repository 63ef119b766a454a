// Package decoder runs a language model in a worker process and carries its
// key-value cache from call to call: what validating and comparing with goldens
// need. The worker (internal/engine) stands a model that ends its process. What
// the model takes is read by internal/signature. A model without a cache is fed
// whole sequences. One whose cache tracks the length of each row
// (GroupQueryAttention, as ONNX Runtime GenAI's builder writes it) has no
// position_ids and takes padding on the right of the first call.
//
//	d, err := decoder.Open(ctx, eng, "model.onnx", decoder.Options{})
//	logits, cache, err := d.Run(ctx, decoder.Step{Batch: 1, Length: 3, IDs: ids, Mask: mask, Positions: positions})
package decoder
