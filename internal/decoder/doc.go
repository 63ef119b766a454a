// Package decoder feeds a language model by the input names that exporters
// use (input_ids, attention_mask, position_ids, a float input per cache) and
// carries its key-value cache from call to call: what validating and comparing
// with goldens need. A model without a cache is fed whole sequences.
//
//	d, err := decoder.Open(ctx, eng, "model.onnx")
//	logits, cache, err := d.Run(ctx, decoder.Step{Batch: 1, Length: 3, IDs: ids, Mask: mask, Positions: positions})
package decoder
