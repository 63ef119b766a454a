package evaluation

import (
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// cellOf is a cell whose tokens are letters.
func cellOf(t *testing.T, name string, length int) *cell {
	t.Helper()
	tk, err := tokenizer.Open("../../../testdata/lm")
	if err != nil {
		t.Fatal(err)
	}
	form, err := Plan{}.form(name)
	if err != nil {
		t.Fatal(err)
	}
	return &cell{prompter: &prompter{tokenizer: tk}, form: form, length: length, depths: []float64{0.1, 0.9}, samples: 12, seed: 3}
}

// A trial fills its length, its answers stand in the prompt where they should, and the model is
// not told them behind the haystack.
func TestTrials(t *testing.T) {
	for _, task := range tasks() {
		const length = 3000
		c := cellOf(t, task.name, length)
		trials, err := task.trials(c)
		if err != nil {
			t.Fatalf("%s: %v", task.name, err)
		}
		if len(trials) != 24 {
			t.Errorf("%s: %d trials, want 24", task.name, len(trials))
		}
		different := map[string]bool{}
		for _, x := range trials {
			if n := len(x.Tokens) + x.Most; n > length || n < length-200 {
				t.Errorf("%s: a prompt with its answer has %d tokens, want a few less than %d", task.name, n, length)
			}
			text := c.tokenizer.Decode(x.Tokens, false)
			different[text] = true
			if x.Need < 1 || x.Need > len(x.Answers) {
				t.Errorf("%s: %d of %d answers are needed", task.name, x.Need, len(x.Answers))
			}
			question, _, _ := strings.Cut(c.form.Question, "{")
			asked := strings.LastIndex(text, question)
			at := strings.Index(text, x.Answers[0])
			if at < 0 || at > asked {
				t.Fatalf("%s: the answer %s stands at %d of %d", task.name, x.Answers[0], at, asked)
			}
			before := len(c.form.Before)
			if share := float64(at-before) / float64(asked-before); share < x.Depth-0.12 || share > x.Depth+0.12 {
				t.Errorf("%s: the answer stands at %.2f, want %.2f", task.name, share, x.Depth)
			}
			for _, a := range x.Answers {
				if strings.Contains(text[asked:], a) {
					t.Errorf("%s: the question tells the answer: %q", task.name, text[asked:])
				}
				if !strings.Contains(text[:asked], a) {
					t.Errorf("%s: %s is not hidden", task.name, a)
				}
			}
			if x.found("nothing") || !x.found(strings.Join(x.Answers[:x.Need], " ")) || x.Need > 1 && x.found(x.Answers[0]) {
				t.Errorf("%s: of %v %d are needed, and that is not what is found", task.name, x.Answers, x.Need)
			}
		}
		if len(different) != len(trials) {
			t.Errorf("%s: only %d of %d prompts are different", task.name, len(different), len(trials))
		}
		again, err := task.trials(c)
		if err != nil || !slices.EqualFunc(trials, again, func(a, b Trial) bool { return slices.Equal(a.Tokens, b.Tokens) }) {
			t.Errorf("%s: the same seed draws other samples, %v", task.name, err)
		}
		c.seed++
		again, err = task.trials(c)
		if err != nil || slices.Equal(trials[0].Tokens, again[0].Tokens) {
			t.Errorf("%s: another seed draws the same samples, %v", task.name, err)
		}
	}
}

func TestTooShort(t *testing.T) {
	if _, err := passkey(cellOf(t, "passkey", 50)); err == nil || !strings.Contains(err.Error(), "50 tokens are too few") {
		t.Errorf("%v", err)
	}
}

func TestParseForm(t *testing.T) {
	for text, want := range map[string]string{
		"needle: '{key}'\nquestion: '?'\ntokens: 5\n":                       "",
		"needle: '{key}'\nquestion: '?'\n":                                  "tokens:",
		"needle: 'key'\nquestion: '?'\ntokens: 5\n":                         "needle:",
		"needle: '{key}'\ntokens: 5\n":                                      "question:",
		"needle: '{key}'\nquestion: '?'\ntokens: 5\nneed: 2\n":              "need:",
		"needle: '{key}'\nquestion: '?'\ntokens: 5\nneedels: 2\n":           "line 4",
		"needle: '{key}\nquestion: '?'\ntokens: 5\n":                        "cannot be read",
		"needle: '{key}'\nquestion: '?'\ntokens: 5\nneedles: 3\nneed: -1\n": "need:",
	} {
		_, err := parseForm([]byte(text))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
