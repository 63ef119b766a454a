package evaluation

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// Every prompt of pass keys and needles, drawn numbers included, is the one that a script in Python makes
// without our code (testdata/evaluate.py).
func TestTrialsOfScript(t *testing.T) {
	b, err := os.ReadFile("testdata/trials.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Depths  []float64
		Samples int
		Seed    uint64
		Cells   []struct {
			Task   string
			Length int
			Trials []struct {
				Depth   float64
				Index   int
				Answers []string
				Tokens  int
				SHA256  string
				IDs     []int64
			}
		}
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	tk, template := smolLM2(t)
	if len(golden.Cells) != 10 {
		t.Fatalf("%d cells, want two tasks at five lengths", len(golden.Cells))
	}
	for _, c := range golden.Cells {
		p := Plan{Depths: golden.Depths, Samples: golden.Samples, Seed: golden.Seed}
		trials, err := p.trials(&prompter{tk, template}, c.Task, c.Length)
		if err != nil {
			t.Fatal(err)
		}
		if len(trials) != len(c.Trials) {
			t.Fatalf("%s, %d tokens: %d trials, want %d", c.Task, c.Length, len(trials), len(c.Trials))
		}
		for i, want := range c.Trials {
			got := trials[i]
			if got.Depth != want.Depth || got.Index != want.Index || !slices.Equal(got.Answers, want.Answers) || len(got.Tokens) != want.Tokens || digest(got.Tokens) != want.SHA256 {
				t.Errorf("%s, %d tokens, depth %g, sample %d: %q in %d tokens, want %q in %d", c.Task, c.Length, want.Depth, want.Index, got.Answers, len(got.Tokens), want.Answers, want.Tokens)
			}
			if len(want.IDs) > 0 && !slices.Equal(got.Tokens, want.IDs) {
				t.Errorf("%s, %d tokens: %q, want %q", c.Task, c.Length, tk.Decode(got.Tokens, true), tk.Decode(want.IDs, true))
			}
		}
	}
}

// smolLM2 is SmolLM2's tokenizer with its chat template.
func smolLM2(t *testing.T) (*tokenizer.Tokenizer, *chat.Template) {
	t.Helper()
	const folder = "../../../testdata/smollm2"
	tk, err := tokenizer.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return tk, template
}
