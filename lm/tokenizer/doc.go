// Package tokenizer reads Hugging Face's tokenizer.json as it is and turns texts into the ids
// of tokens and back, as the Python package tokenizers does.
//
//	t, err := tokenizer.Open("folder")
//	ids, err := t.EncodeWithSpecial("Hello, world!")
//	text := t.Decode(ids, false)
//
// A text goes through the parts of the file in this order: added tokens are found (added.go),
// what stands between them is normalized (normalize.go, precompiled.go), cut into words
// (pretokenize.go, split.go, metaspace.go) and each word into tokens by the model (bpe.go,
// unigram.go, wordpiece.go); the post-processor puts tokens around them (postprocess.go).
// Decoders go back (decode.go, decoders.go). A Stream decodes ids as they come, in pieces of
// valid UTF-8.
//
// Regular expressions of the files are written for Oniguruma and Rust's regex; oniguruma.go
// and class.go translate them for the engine that is used here. A part that the package does
// not know is an error of Open that names it, and never passed over.
package tokenizer
