// Package lm runs decoder-only language models under ONNX Runtime, patched by
// rope-rewrite or not: a folder in, text out, for many callers at the same time.
//
//	err := customop.InitRuntime("")               // finds ONNX Runtime, once per process
//	model, err := lm.Open("folder", lm.Options{Rows: 8})
//	defer model.Close()
//	for token, err := range model.Generate(ctx, lm.Input{Text: "Once upon"}, lm.GenerateOptions{}) {
//		fmt.Print(token.Text)
//	}
//
// # What is where
//
// A Model (model.go) is a Decoder with the files of its folder: tokenizer.json (package tokenizer), the chat
// template (package chat) and the configurations (config.go). Generate (generate.go) streams a text; package
// sample chooses its tokens. A Conversation (conversation.go) renders its messages as a whole each time.
//
// A Decoder (decoder.go) knows tokens and logits alone. A Sequence (sequence.go) is one text of it, with a cache
// that grows (growing.go) or has a fixed capacity (fixed.go). A Snapshot (snapshot.go) keeps what a cache holds.
//
// Texts of many callers come from a pool of sequences (pool.go), or from a scheduler (scheduler.go) over the rows
// of one cache of fixed capacity. Rows of several documents (documents.go) are for models that were patched
// with --documents. ONNX Runtime's binding is named in one file (runtime.go).
//
// # Models
//
// A model takes input_ids and what exporters name attention_mask, position_ids
// and token_type_ids, past keys and values in float32, float16 or bfloat16
// [batch, heads, past, size], and gives logits and the present keys and values. Merged
// decoders have use_cache_branch besides. Sizes come from the model's shapes, or from config.json beside
// it. What rope-rewrite adds is recognised by the op that reads it, whatever its
// name: the cache of fixed capacity (--kv fixed), which is used in place, document
// ids, and the places of --logits last. Open refuses what cannot be fed, with the input's name.
package lm
