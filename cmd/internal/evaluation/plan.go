package evaluation

import (
	"errors"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
)

// Plan says what is measured.
type Plan struct {
	Tasks     []string             // of TaskNames
	Lengths   []int                // tokens of a prompt with its answer, or of a window of the text
	Depths    []float64            // where in the text an answer stands, from 0 to 1; RULER's tasks draw the places
	Samples   int                  // of each cell; of each length where a task draws the places
	SamplesAt map[int]int          `json:",omitempty"` // of each cell of a length, in place of Samples
	Seed      uint64               // of what is drawn
	Forms     map[string]task.Form // by task, in place of the built-in ones
	Haystack  string               // a text in place of that of the forms
	Text      string               // what perplexity is measured on
	Windows   int                  // of the text, from equally distant starts
	Plain     bool                 // asks in plain text, whatever chat template there is
	Memory    int64                // bytes that caches may take; 0 is as many as there are
}

// Check refuses a plan before anything runs.
func (p Plan) Check() error {
	switch {
	case len(p.Tasks) == 0:
		return errors.New("no task is given")
	case len(p.Lengths) == 0 || slices.Min(p.Lengths) < 1:
		return errors.New("lengths: expected numbers of tokens above 0")
	case p.Samples < 1 || p.Windows < 1:
		return errors.New("samples and windows: expected numbers above 0")
	case slices.ContainsFunc(slices.Collect(maps.Values(p.SamplesAt)), func(n int) bool { return n < 1 }):
		return errors.New("samples: expected numbers above 0")
	case len(p.Depths) == 0 || slices.Min(p.Depths) < 0 || slices.Max(p.Depths) > 1:
		return errors.New("depths: expected shares of the text from 0 to 1")
	}
	for _, name := range p.Tasks {
		if name == Perplexity {
			if p.Text == "" {
				return errors.New("perplexity needs a text, and none is given")
			}
			continue
		}
		t, err := task.Of(name, Perplexity)
		if err != nil {
			return err
		}
		if _, err := p.form(t); err != nil {
			return err
		}
	}
	return nil
}

// form is the prompt of a task.
func (p Plan) form(t task.Task) (task.Form, error) {
	if given, own := p.Forms[t.Name]; own {
		return t.Form(&given, p.Haystack)
	}
	return t.Form(nil, p.Haystack)
}

// samples is how many a cell of a length gets.
func (p Plan) samples(length int) int {
	if n, own := p.SamplesAt[length]; own {
		return n
	}
	return p.Samples
}
