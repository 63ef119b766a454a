package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

func TestEndTokens(t *testing.T) {
	const generation, config = "generation_config.json", "config.json"
	for name, c := range map[string]struct {
		files map[string]string
		want  map[int64]bool
	}{
		"number":            {map[string]string{generation: `{"eos_token_id": 2}`, config: `{"eos_token_id": 3}`}, map[int64]bool{2: true}},
		"list":              {map[string]string{generation: `{"eos_token_id": [2, 5]}`}, map[int64]bool{2: true, 5: true}},
		"only in config":    {map[string]string{generation: `{}`, config: `{"eos_token_id": 3}`}, map[int64]bool{3: true}},
		"null, then config": {map[string]string{generation: `{"eos_token_id": null}`, config: `{"eos_token_id": 3}`}, map[int64]bool{3: true}},
		"none":              {nil, map[int64]bool{}},
	} {
		folder := t.TempDir()
		for file, content := range c.files {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := endTokens(folder); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v, %v", name, got, c.want, err)
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, config), []byte(`{"eos_token_id": "</s>"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := endTokens(folder); err == nil || !strings.Contains(err.Error(), "eos_token_id") {
		t.Errorf("a text as eos_token_id: %v", err)
	}
}

func TestPrompt(t *testing.T) {
	tokenizer, err := lm.OpenTokenizer("../../testdata/smollm2")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := prompt(tokenizer, options{prompt: "Hi", system: "Be kind", chat: true})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, id := range ids {
		text.Write(tokenizer.Decode(id))
	}
	want := "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
	if start, _ := tokenizer.Special("<|im_start|>"); text.String() != want || ids[0] != start {
		t.Errorf("%v is %q, want %q", ids, text.String(), want)
	}
}

// What is missing is named in a sentence, the model first.
func TestRunRefuses(t *testing.T) {
	there := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(there, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ model, prompt, want string }{
		{"", "", "which model? Give -model FILE.onnx, and -prompt TEXT"},
		{"nosuch.onnx", "", "there is no model nosuch.onnx: give the path of an .onnx file; make smollm2 fetches one"},
		{there, "", "give -prompt TEXT, which the text starts with"},
	} {
		if err := run(t.Context(), options{model: c.model, prompt: c.prompt}); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.model, err, c.want)
		}
	}
}
