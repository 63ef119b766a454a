package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm/chat"
)

// With -chat the prompt stands in the form of SmolLM2's own template, which has a system's
// message of its own.
func TestChat(t *testing.T) {
	template, err := chat.Open("../../testdata/smollm2")
	if err != nil {
		t.Fatal(err)
	}
	for system, want := range map[string]string{
		"Be kind": "<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
		"":        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
	} {
		in := options{prompt: "Hi", system: system, chat: true}.input()
		if text, err := template.Render(in.Messages, chat.Options{AddGenerationPrompt: true}); err != nil || text != want {
			t.Errorf("%q, want %q, %v", text, want, err)
		}
	}
	if in := (options{prompt: "Hi"}).input(); in.Text != "Hi" || in.Messages != nil {
		t.Errorf("%+v", in)
	}
}

// What is missing is named in a sentence, the model first.
func TestRunRefuses(t *testing.T) {
	there := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(there, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ model, prompt, want string }{
		{"", "", "no model is given; give -model FILE.onnx and -prompt TEXT"},
		{"nosuch.onnx", "", "there is no model nosuch.onnx: give the path of an .onnx file; make smollm2 fetches one"},
		{there, "", "give -prompt TEXT, which the text starts with"},
	} {
		if err := run(t.Context(), options{model: c.model, prompt: c.prompt}); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.model, err, c.want)
		}
	}
}
