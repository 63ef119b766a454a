package modelfolder_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
)

// A tokenizer that named the model's length names the new one, also when the folder is rewritten again, and the old
// one when the rewrite is taken back. The tokenizer of a model in the folder onnx is above it.
func TestTokenizer(t *testing.T) {
	const config = `{"model_max_length": 64}`
	folder := filepath.Join(t.TempDir(), "hub")
	put(t, folder, "llama__dynamo18/config.json", "llama__dynamo18/model.onnx as onnx/model.onnx")
	write(t, folder, "tokenizer_config.json", config)
	write(t, folder, "other/tokenizer_config.json", config)
	first, f := rewritten(t, folder, options(t, "scaling yarn:factor=4"), modelfolder.WriteOptions{})
	if got := changesOf(f, "tokenizer_config.json"); got != "model_max_length 64 → 256" {
		t.Errorf("changes %q", got)
	}
	if got := read(t, first, "other/tokenizer_config.json"); got != config {
		t.Errorf("the tokenizer of no model: %s", got)
	}
	second, f := rewritten(t, first, options(t, "scaling linear:factor=2"), modelfolder.WriteOptions{})
	if got := changesOf(f, "tokenizer_config.json"); got != "model_max_length 64 → 128" {
		t.Errorf("again: %q", got)
	}
	back := options(t)
	back.Earlier.Restore = true
	third, _ := rewritten(t, second, back, modelfolder.WriteOptions{})
	if got := read(t, third, "tokenizer_config.json"); got != config {
		t.Errorf("taken back: %s", got)
	}
}

// What is not written is said.
func TestTokenizerOfAnotherLength(t *testing.T) {
	const config = `{"model_max_length": 32}`
	folder := t.TempDir()
	put(t, folder, "llama__dynamo18/config.json", "llama__dynamo18/model.onnx")
	write(t, folder, "tokenizer_config.json", config)
	output, f := rewritten(t, folder, options(t, "scaling yarn:factor=4"), modelfolder.WriteOptions{})
	if want := "tokenizer_config.json: model_max_length is 32, which is not"; len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], want) {
		t.Errorf("warnings %q, want %s", f.Warnings, want)
	}
	if got := read(t, output, "tokenizer_config.json"); got != config {
		t.Errorf("it was changed to %s", got)
	}
}

// A model whose configuration asks for a scaling has two lengths, and a tokenizer may name the longer one.
func TestTokenizerOfAScaledModel(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, "llama__dynamo18/model.onnx")
	write(t, folder, "config.json", `{"max_position_embeddings": 128, "rope_theta": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0, "original_max_position_embeddings": 64}}`)
	write(t, folder, "tokenizer_config.json", `{"model_max_length": 128}`)
	_, f := rewritten(t, folder, options(t, "scaling yarn:factor=4"), modelfolder.WriteOptions{})
	if got := changesOf(f, "tokenizer_config.json"); got != "model_max_length 128 → 256" {
		t.Errorf("changes %q, warnings %q", got, f.Warnings)
	}
}
