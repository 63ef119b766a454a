package evaluation

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// Perplexity is the task that asks nothing: how well the model predicts a text.
const Perplexity = "perplexity"

// TaskNames are the names of all tasks.
func TaskNames() []string { return append(task.Names(), Perplexity) }

// Trial is one question to a model.
type Trial struct {
	task.Sample
	Task   task.Task
	Length int // tokens that were asked for; the prompt and its answer have at most so many
	lm.Row     // the prompt; with document ids where its text is of documents
	Most   int // tokens of an answer
}

// trials are those of a task at a length.
func (p Plan) trials(by *prompter, name string, length int) (list []Trial, err error) {
	t, err := task.Of(name, Perplexity)
	if err != nil {
		return nil, err
	}
	form, err := p.form(t)
	if err != nil {
		return nil, err
	}
	samples, err := t.Samples(task.Cell{Form: form, Length: length, Depths: p.Depths, Samples: p.samples(length), Seed: p.Seed, Count: by.count})
	if err != nil {
		return nil, err
	}
	for _, s := range samples {
		row, err := by.row(s.Prompt)
		if err != nil {
			return nil, err
		}
		list = append(list, Trial{Sample: s, Task: t, Length: length, Row: row, Most: form.Tokens})
	}
	return slices.Clip(list), nil
}

// part is a part of the prompt.
func (t Trial) part(from, to int) lm.Row {
	row := lm.Row{Tokens: t.Tokens[from:to]}
	if t.Documents != nil {
		row.Documents = t.Documents[from:to]
	}
	return row
}

// lost reports whether it is not known which tokens are of which document.
func (t Trial) lost() bool { return t.Cuts != nil && t.Documents == nil }

// sample is the trial's, without its outcome.
func (t Trial) sample(v Variant) Sample {
	return Sample{
		Variant: v.Name, Task: t.Task.Name, Length: t.Length, Depth: t.Depth, Index: t.Index, Text: t.Group,
		Wanted: t.Answers, Tokens: len(t.Tokens), Prompt: digest(t.Tokens),
	}
}
