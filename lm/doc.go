// Package lm runs decoder-only language models under ONNX Runtime, patched by rope-rewrite or
// not: a folder in, text out.
//
//	err := customop.InitRuntime("")               // finds ONNX Runtime, once per process
//	model, err := lm.Open("folder", lm.Options{})
//	defer model.Close()
//	for token, err := range model.Generate(ctx, lm.Input{Text: "Once upon"}, lm.GenerateOptions{}) {
//		fmt.Print(token.Text)
//	}
//
// # What is where
//
// A Model (model.go) is a Decoder with what stands beside the file: tokenizer.json (package
// tokenizer), the chat template (package chat) and generation_config.json. Generate (generate.go) streams a text; package sample chooses its
// tokens. A Decoder (decoder.go) knows tokens and logits alone: Prefill computes a prompt in
// chunks, Forward further tokens. A Snapshot (snapshot.go) keeps what a cache holds, so that a
// prefix of many texts is computed once. Rows of several documents (documents.go) are for
// models that were patched with --documents.
//
// # Models
//
// A model takes input_ids and what exporters name attention_mask, position_ids and
// token_type_ids, past keys and values in float32, float16 or bfloat16 [batch, heads, past,
// size], and gives logits and the present keys and values. Merged decoders have
// use_cache_branch besides. Sizes come from the model's shapes, or from config.json beside it.
// What rope-rewrite adds is recognised by the op that reads it, whatever its name: the cache
// of fixed capacity (--kv fixed), which is used in place, document ids, and the places of
// --logits last. Open refuses what cannot be fed, with the input's name.
//
// The cache belongs to one sequence. A Decoder must not be used by several goroutines at once.
package lm
