package recommend

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
)

// Search says what is looked for.
type Search struct {
	Task       string
	Trained    int64    // tokens; 0 if unknown
	Context    int64    // tokens
	Samples    int      // that decide, of each method and length
	Candidates []string // methods to try; nil is those of Candidates for what the model can do
	Perplexity bool     // also compares how well the text is predicted

	// Measure computes samples of a method; those that it computed before it may return again.
	Measure func(ctx context.Context, ask Ask) ([]evaluation.Sample, error)
}

// Ask is what Measure computes.
type Ask struct {
	Method  string // as "AXIS SPEC", or Unchanged
	Tasks   []string
	Lengths []int
	Samples int // of each length
}

const (
	shortest   = 2048    // tokens of the texts that show whether a model understands the questions
	understood = 0.8     // share of them that it must solve
	kept       = 2.0 / 3 // of that share, which the lower end of an interval must reach at a length
	finalists  = 2       // methods that are measured with all samples
	fewest     = 5       // samples of a method
	enough     = 3       // methods that do as well as the unchanged model with short texts, after which no other is tried
)

// running is a search that runs.
type running struct {
	Search
	result  Result
	samples map[string]evaluation.Sample // by what tells them apart
	order   []string                     // of their keys, as they came
}

// Run searches. After an error the result has what was measured.
func (s Search) Run(ctx context.Context) (Result, error) {
	r := &running{Search: s, samples: map[string]evaluation.Sample{}}
	r.result = Result{Task: s.Task, Trained: s.Trained, Context: s.Context}
	err := r.run(ctx)
	return r.result, err
}

func (r *running) run(ctx context.Context) error {
	lengths := r.lengths()
	base, err := r.share(ctx, Unchanged, lengths[0], r.Samples)
	if err != nil {
		return err
	}
	if base.Score < understood {
		r.result.Verdict = NotUnderstood
		return nil
	}
	holds := func(c evaluation.Cell) bool { return c.Low >= kept*base.Score }
	if holds(base) {
		r.result.Effective = int64(lengths[0])
	}
	for _, length := range lengths[1:] {
		c, err := r.share(ctx, Unchanged, length, r.Samples)
		if err != nil {
			return err
		}
		if !holds(c) {
			break
		}
		r.result.Effective = int64(length)
	}
	end := int(r.Context)
	plain, err := r.share(ctx, Unchanged, end, r.Samples)
	if err != nil {
		return err
	}
	if holds(plain) {
		r.result.Verdict = NothingNeeded
		return nil
	}
	best, err := r.best(ctx, end, base.Score)
	if err != nil {
		return err
	}
	if best == "" || r.cell(best, end).Low <= plain.High {
		r.result.Verdict = NothingHelps
		return nil
	}
	r.result.Verdict, r.result.Best = Method, best
	return r.below(ctx, best, lengths)
}

// lengths are those at which the unchanged model is measured, the shortest first: from short texts on by
// doubling, the trained length, and the context.
func (r *running) lengths() (list []int) {
	for n := int64(min(shortest, r.Context)); n < r.Context; n *= 2 {
		list = append(list, int(n))
	}
	if r.Trained > shortest && r.Trained < r.Context {
		list = append(list, int(r.Trained))
	}
	list = append(list, int(r.Context))
	slices.Sort(list)
	return slices.Compact(list)
}

// best returns the candidate that is best at a length; "" if there is none. short is what the unchanged model
// scores with short texts.
func (r *running) best(ctx context.Context, length int, short float64) (string, error) {
	list := r.Candidates
	if list == nil {
		known := r.Trained
		if known == 0 || r.result.Effective > 0 && r.result.Effective < known {
			known = r.result.Effective // what training left unused counts as unseen
		}
		list = Candidates(known, r.Context)
	}
	for samples := min(max(r.Samples/4, fewest), r.Samples); ; samples = min(2*samples, r.Samples) {
		var still []string
		good := 0
		for _, method := range list {
			if r.Candidates == nil && good == enough {
				r.result.Left = append(r.result.Left, Left{method, fmt.Sprintf("%d methods that cost less do as well as the unchanged model with short texts", good)})
				continue
			}
			c, err := r.share(ctx, method, length, samples)
			if err != nil && ctx.Err() != nil {
				return "", err
			}
			if err != nil { // a model may not take a method
				r.result.Left = append(r.result.Left, Left{method, err.Error()})
				continue
			}
			if still = append(still, method); c.Score >= short {
				good++
			}
		}
		slices.SortStableFunc(still, func(a, b string) int { return cmp.Compare(r.cell(b, length).Score, r.cell(a, length).Score) })
		if len(still) > finalists {
			still = still[:max(len(still)/2, finalists)]
		}
		if samples == r.Samples || len(still) == 0 {
			if len(still) == 0 {
				return "", nil
			}
			return still[0], nil
		}
		list = still
	}
}

// below measures what the method costs where the unchanged model does well.
func (r *running) below(ctx context.Context, method string, lengths []int) error {
	var shorter []int
	for _, n := range lengths {
		if int64(n) <= r.result.Effective {
			shorter = append(shorter, n)
		}
	}
	if len(shorter) > 2 {
		shorter = []int{shorter[0], shorter[len(shorter)-1]}
	}
	for _, n := range shorter {
		if _, err := r.share(ctx, method, n, r.Samples); err != nil {
			return err
		}
	}
	if !r.Perplexity {
		return nil
	}
	for _, m := range []string{Unchanged, method} {
		if err := r.ask(ctx, Ask{m, []string{evaluation.Perplexity}, append(shorter, int(r.Context)), r.Samples}); err != nil {
			return err
		}
	}
	return nil
}

// share measures a method at a length.
func (r *running) share(ctx context.Context, method string, length, samples int) (evaluation.Cell, error) {
	if c := r.cell(method, length); c.Samples >= samples {
		return c, nil
	}
	err := r.ask(ctx, Ask{method, []string{r.Task}, []int{length}, samples})
	return r.cell(method, length), err
}

// ask adds samples to those that there are.
func (r *running) ask(ctx context.Context, ask Ask) error {
	samples, err := r.Measure(ctx, ask)
	for _, s := range samples {
		key := fmt.Sprint(s.Variant, "\x00", s.Task, s.Length, s.Depth, s.Index)
		if _, known := r.samples[key]; !known {
			r.order = append(r.order, key)
		}
		r.samples[key] = s
	}
	r.summarise()
	return err
}

func (r *running) cell(method string, length int) evaluation.Cell {
	c, _ := r.result.Share(method, length)
	return c
}

// summarise makes cells of all samples.
func (r *running) summarise() {
	var list []evaluation.Sample
	for _, key := range r.order {
		list = append(list, r.samples[key])
	}
	s := evaluation.Summarise(list, r.lengths())
	r.result.Measured, r.result.Readings = evaluation.OverDepths(s.Cells), s.Readings
}
