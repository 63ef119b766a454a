package evaluation

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// A prompt has the tokens that transformers gives a conversation whose last message, the begin of the
// answer, the model continues (testdata/make_prompts.py).
func TestPrompts(t *testing.T) {
	b, err := os.ReadFile("testdata/prompts.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct {
		Template, Answer, Text string
		IDs                    []int64
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	tk, err := tokenizer.Open("../../../testdata/smollm2")
	if err != nil {
		t.Fatal(err)
	}
	specials := map[string]string{"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>", "unk_token": "<|endoftext|>"}
	for name, c := range cases {
		// Some templates write the day; it is that of the goldens.
		template, err := chat.Parse(`{%- set date_string = "24 Nov 2026" -%}`+c.Template, specials)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := &prompter{tokenizer: tk, chat: template}
		got, err := p.tokens(task.Prompt{Text: "There is a pass key. The pass key is 71432.\n\nWhat is the pass key?", Answer: c.Answer})
		if err != nil || !slices.Equal(got, c.IDs) {
			t.Errorf("%s: %q, want %q (%v)", name, tk.Decode(got, true), c.Text, err)
		}
	}
}
