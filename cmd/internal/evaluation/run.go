package evaluation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
	"github.com/rope-rewrite/rope-rewrite/provenance"
)

// Sample is the outcome of one trial, or of one window of the text.
type Sample struct {
	Variant string   `json:"variant"`
	Task    string   `json:"task"`
	Length  int      `json:"length"`
	Depth   float64  `json:"depth"`
	Index   int      `json:"index"`
	Text    int      `json:"text,omitempty"` // the number of the text, from 1, where samples share texts
	Right   bool     `json:"right"`          // whether enough of the answers were found
	Score   float64  `json:"score"`          // the share of what was asked for that was found
	Wanted  []string `json:"wanted,omitempty"`
	Answer  string   `json:"answer,omitempty"`
	Tokens  int      `json:"tokens"`           // of the prompt or window
	Prompt  string   `json:"prompt,omitempty"` // SHA-256 of the prompt's tokens, with commas between them
	IDs     []int64  `json:"ids,omitempty"`    // the tokens themselves, if Options.Prompts asks for them
	// Documents are the document ids of a prompt that has documents, as a model takes them that was patched for such
	// (lm.Row), if Options.Prompts asks for them.
	Documents []int64 `json:"documents,omitempty"`
	Seconds   float64 `json:"seconds"`
	// LogLoss is the mean negative log-probability, in nats, of each Block tokens of a
	// window; the first block has one less, the last may have fewer.
	LogLoss []float64 `json:"log_loss,omitempty"`
	UpTo    []UpTo    `json:"up_to,omitempty"` // of a window, by length
}

// key tells samples apart.
func (s Sample) key() string {
	return fmt.Sprintf("%s\x00%s\x00%d\x00%g\x00%d", s.Variant, s.Task, s.Length, s.Depth, s.Index)
}

// Options says how an evaluation runs.
type Options struct {
	Model    lm.Options
	Done     []Sample                         // of an earlier run, which are not computed again
	Sample   func(Sample) error               // gets each sample as it comes
	Methods  func(Variant, []provenance.Edit) // told what a variant's patch did; may be nil
	Progress func(text string)                // told what is being done; may be nil
	Prompts  bool                             // samples have the tokens of their prompts
}

// runner is an evaluation that runs.
type runner struct {
	Plan
	Options
	done     map[string]bool
	variants int // still to come after this one
	start    time.Time
	paid     float64 // cost of what was computed
	due      float64 // cost of what this variant still needs
	each     float64 // cost of a whole variant
}

// Run evaluates each variant in turn. A sample is given out as it comes; after an error those
// that were given out stand.
func Run(ctx context.Context, plan Plan, variants []Variant, options Options) error {
	if err := plan.Check(); err != nil {
		return err
	}
	slices.Sort(plan.Lengths)
	plan.Lengths = slices.Compact(plan.Lengths)
	r := &runner{Plan: plan, Options: options, done: map[string]bool{}}
	if r.Progress == nil {
		r.Progress = func(string) {}
	}
	for _, s := range options.Done {
		r.done[s.key()] = true
	}
	for i, v := range variants {
		r.variants = len(variants) - 1 - i
		if err := r.variant(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// variant computes all samples of one.
func (r *runner) variant(ctx context.Context, v Variant) error {
	asks := slices.ContainsFunc(r.Tasks, func(name string) bool { return name != Perplexity })
	reads := slices.Contains(r.Tasks, Perplexity)
	r.due = 0
	if reads {
		r.due = float64(r.Windows) * cost(0, r.Lengths[len(r.Lengths)-1])
	}
	if asks {
		if err := r.with(ctx, v, true, r.questions); err != nil {
			return err
		}
	}
	if reads {
		return r.with(ctx, v, false, r.windows)
	}
	return nil
}

// with opens a variant for some work.
func (r *runner) with(ctx context.Context, v Variant, lastLogits bool, work func(context.Context, Variant, *opened) error) (err error) {
	r.Progress("preparing " + v.Name)
	model, err := v.open(ctx, r.Model, lastLogits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.close()) }()
	if r.Methods != nil {
		r.Methods(v, model.methods)
	}
	return work(ctx, v, model)
}

// questions asks a variant what the plan's tasks ask.
func (r *runner) questions(ctx context.Context, v Variant, m *opened) error {
	type round struct {
		trials []Trial
		stages []stage
	}
	var rounds []round
	for _, name := range r.Tasks {
		if name == Perplexity {
			continue
		}
		for _, length := range r.Lengths {
			trials, err := r.trials(r.prompter(m.model), name, length)
			if err != nil {
				return err
			}
			trials = slices.DeleteFunc(trials, func(t Trial) bool { return r.done[t.sample(v).key()] })
			if m.model.Decoder().Documents() && slices.ContainsFunc(trials, Trial.lost) {
				return fmt.Errorf("%s: the model takes document ids, but the tokenizer or the chat template changes the text of the documents, so that their tokens are not known", name)
			}
			plan, err := r.within(m, trials)
			if err != nil {
				return err
			}
			rounds = append(rounds, round{trials, plan})
			for i, t := range trials {
				r.due += t.cost(plan[i])
			}
		}
	}
	r.each = max(r.each, r.due)
	for _, round := range rounds {
		if err := r.ask(ctx, v, m, round.trials, round.stages); err != nil {
			return err
		}
	}
	return nil
}

// prompter makes the prompts of a model.
func (p Plan) prompter(m *lm.Model) *prompter {
	if p.Plain {
		return &prompter{m.Tokenizer, nil}
	}
	return &prompter{m.Tokenizer, m.Chat}
}

// within plans trials so that their caches fit into the memory that may be taken.
func (r *runner) within(m *opened, trials []Trial) ([]stage, error) {
	longest, length := 0, 0
	for _, t := range trials {
		longest, length = max(longest, len(t.Tokens)+t.Most), t.Length
	}
	copies := 2 // a cache that grows stands twice while a call runs
	if rows := m.model.Decoder().CacheRows(); rows > 0 {
		copies, longest = 1, rows
	}
	for _, sharing := range []bool{true, false} {
		if sharing && m.model.Decoder().WholePrompts() {
			continue // a prompt in pieces would mean something else
		}
		list := stages(trials, sharing)
		kept := 0
		for _, s := range list {
			sum := 0
			for _, n := range s.keep {
				sum += n
			}
			kept = max(kept, sum)
		}
		if need := m.model.Decoder().TokenBytes() * int64(copies*longest+kept); r.Memory == 0 || need <= r.Memory {
			return list, nil
		}
	}
	return nil, &MemoryError{length, m.model.Decoder().TokenBytes() * int64(copies*longest), r.Memory}
}

// MemoryError says that the caches of a length take more bytes than they may.
type MemoryError struct {
	Length     int
	Need, Most int64
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("the cache of %d tokens takes %.1f MB, but caches may take %.1f MB; give shorter lengths or more memory", e.Length, float64(e.Need)/(1<<20), float64(e.Most)/(1<<20))
}

// ask puts trials to a model, by the stages planned.
func (r *runner) ask(ctx context.Context, v Variant, m *opened, trials []Trial, plan []stage) (err error) {
	kept := map[int]*lm.Snapshot{}
	defer func() {
		for _, s := range kept {
			err = errors.Join(err, s.Close())
		}
	}()
	for i, t := range trials {
		r.say(v, t.Task.Name, t.Length)
		start := time.Now()
		if s := kept[plan[i].from]; s != nil {
			err = m.text.Restore(s)
		} else {
			err = m.text.Truncate(0)
		}
		if err != nil {
			return err
		}
		for n, s := range kept {
			if !slices.Contains(plan[i].keep, n) {
				delete(kept, n)
				if err := s.Close(); err != nil {
					return err
				}
			}
		}
		for _, n := range plan[i].keep {
			if kept[n] != nil {
				continue
			}
			if _, err := m.text.Prefill(ctx, t.part(m.text.Length(), n)); err != nil {
				return err
			}
			if kept[n], err = m.text.Snapshot(); err != nil {
				return err
			}
		}
		s := t.sample(v)
		if r.Prompts {
			s.IDs, s.Documents = t.Tokens, t.Documents
		}
		if s.Answer, err = answer(ctx, m, t); err != nil {
			return err
		}
		s.Score, s.Right = t.Task.Score(s.Answer, t.Sample)
		s.Seconds = time.Since(start).Seconds()
		r.pay(t.cost(plan[i]))
		if err := r.Sample(s); err != nil {
			return err
		}
	}
	return nil
}

// answer lets the model go on behind the prompt, greedily, until enough is found: nothing that comes later
// changes the score.
func answer(ctx context.Context, m *opened, t Trial) (text string, err error) {
	options := lm.GenerateOptions{MaxTokens: t.Most, Sample: &sample.Options{}}
	for token, err := range m.model.GenerateIn(ctx, m.text, lm.Input{Row: t.Row}, options) {
		if err != nil {
			return text, err
		}
		text += token.Text
		if _, right := t.Task.Score(text, t.Sample); right {
			break
		}
	}
	return text, nil
}

// cost is about what a trial takes, in tokens of a prompt. Those of an answer, which come one by
// one, take several times as long.
func (t Trial) cost(s stage) float64 {
	const alone = 8
	return cost(s.from, len(t.Tokens)) + alone*float64(t.Most)
}

// pay counts what was computed.
func (r *runner) pay(cost float64) {
	if r.paid += cost; r.start.IsZero() {
		r.start = time.Now() // the first one is slower than the others, and not counted
		r.paid = 0
	}
	r.due -= cost
}

// say tells what is being done, and how long the rest takes.
func (r *runner) say(v Variant, task string, length int) {
	text := fmt.Sprintf("%s, %s tokens, %s", task, Tokens(length), ShortName(v.Name))
	if r.paid > 0 {
		left := time.Duration(time.Since(r.start).Seconds() / r.paid * (r.due + float64(r.variants)*r.each) * float64(time.Second))
		text = "about " + roughly(left) + " left: " + text
	}
	r.Progress(text)
}

// roughly is a time in one unit.
func roughly(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
