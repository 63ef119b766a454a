// Package tokenizer reads Hugging Face's tokenizer.json.
package tokenizer
