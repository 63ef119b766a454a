// Package lm runs a decoder-only language model under ONNX Runtime: tokens in,
// logits out, with the key-value cache kept between calls. It is what an
// application needs around a model that rope-rewrite has patched, and works
// the same on the original.
//
//	decoder, err := lm.Open("model.rope.onnx", lm.Options{})
//	...
//	defer decoder.Close()
//	logits, err := decoder.Forward(tokens)        // the prompt
//	next := lm.Argmax(logits.Last())
//	logits, err = decoder.Forward([]int64{next})  // one more token
//
// A model is recognised by the usual names of its inputs and outputs:
// input_ids, attention_mask, position_ids, past_key_values.N.key and .value;
// logits, present.N.key and .value. Heads and sizes come from its shapes.
//
// What rope-rewrite adds is fed, too. With --kv fixed the cache is one buffer
// per layer that tokens are appended to in place. With --documents input the
// tokens of a text may belong to several documents (ForwardIn).
package lm
