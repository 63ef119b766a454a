package evaluation

import (
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// The tokens of each document decode to its text, those before all of them to the anchor, and the question
// is the reader's, in plain text and in a conversation.
func TestDocumentsOfPrompts(t *testing.T) {
	tk, template := smolLM2(t)
	for _, p := range []*prompter{{tk, nil}, {tk, template}} {
		for _, name := range []string{"qa_1", "qa_2"} {
			trials, err := Plan{Samples: 10, Seed: 1}.trials(p, name, 1500)
			if err != nil {
				t.Fatal(err)
			}
			for _, trial := range trials {
				text := map[int64]string{}
				for first := 0; first < len(trial.Tokens); {
					end := first
					for end < len(trial.Tokens) && trial.Documents[end] == trial.Documents[first] {
						end++
					}
					if text[trial.Documents[first]] != "" {
						t.Fatalf("%s: document %d is not in one piece", name, trial.Documents[first])
					}
					text[trial.Documents[first]] = tk.Decode(trial.Tokens[first:end], true)
					first = end
				}
				if len(text) < 5 || !strings.HasSuffix(text[lm.Anchor], "The following are given documents.\n\n") || !strings.HasPrefix(text[lm.Reader], "\n\nAnswer the question") {
					t.Fatalf("%s: %d texts, of which the anchor is %q and the reader %q", name, len(text), text[lm.Anchor], text[lm.Reader])
				}
				for i := range int64(len(text) - 2) {
					if !strings.HasPrefix(text[i+1], "Document "+string('0'+rune((i+1)%10))) && i < 9 || strings.Count(text[i+1], "Document ") != 1 {
						t.Errorf("%s: document %d is %q", name, i+1, text[i+1])
					}
				}
			}
		}
	}
}

// A tokenizer that changes the text cannot tell documents, which is an error for models that take their ids.
func TestDocumentsThatAreLost(t *testing.T) {
	tk, err := tokenizer.Parse([]byte(`{"model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "b": 2}, "unk_token": "[UNK]"},
		"normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}}`))
	if err != nil {
		t.Fatal(err)
	}
	row, err := (&prompter{tokenizer: tk}).row(task.Prompt{Text: "A b A", Cuts: []int{0, 2, 4}})
	if err != nil || row.Documents != nil {
		t.Fatalf("documents %v (%v)", row.Documents, err)
	}
	trial := Trial{Row: row}
	trial.Cuts = []int{0, 2, 4}
	if !trial.lost() || (Trial{Row: row}).lost() {
		t.Error("it is not told that documents are lost")
	}
}
