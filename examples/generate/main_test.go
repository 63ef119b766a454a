package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

func TestPrompt(t *testing.T) {
	tokenizer, err := lm.OpenTokenizer("../../testdata/smollm2")
	if err != nil {
		t.Fatal(err)
	}
	text, err := prompt(tokenizer, options{prompt: "Hi", system: "Be kind", chat: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"; text != want {
		t.Errorf("%q, want %q", text, want)
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
