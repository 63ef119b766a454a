// Package lm runs a decoder-only language model under ONNX Runtime: tokens in,
// logits out, with the key-value cache kept between calls. It is what an
// application needs around a model that rope-rewrite has patched, and works
// the same on the original.
//
//	err := customop.InitRuntime("")               // finds ONNX Runtime, once per process
//	decoder, err := lm.OpenDecoder("model.rope.onnx", lm.Options{})
//	defer decoder.Close()
//	logits, err := decoder.Forward(tokens)        // the prompt
//	next := lm.Argmax(logits.Last())
//	logits, err = decoder.Forward([]int64{next})  // one more token
//
// A Tokenizer turns text into tokens, and tokens into bytes; a Stream makes
// whole letters of those. The command in examples/generate puts all of this
// together.
//
// # Models
//
// A model takes input_ids and the inputs that exporters name attention_mask and
// position_ids, past keys and values in float32 [batch, heads, past, size], and
// gives logits and the present keys and values. Sizes come from its shapes, or
// from config.json beside it. Everything else is refused by Open with a reason.
//
// What rope-rewrite adds is fed, too. With --kv fixed the cache is one buffer
// per past input that tokens are appended to in place. With --documents input
// the tokens of a text may belong to several documents (ForwardIn,
// ForwardPacked).
package lm
