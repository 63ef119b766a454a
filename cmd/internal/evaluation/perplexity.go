package evaluation

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

// Block is how many tokens of a window one number of a Sample's LogLoss is the mean of.
const Block = 256

// windows measures how well a variant predicts windows of the text. A token is predicted from
// those before it, so that the longest window holds all shorter ones, but where the frequencies
// depend on the length of a call.
func (r *runner) windows(ctx context.Context, v Variant, m *opened) error {
	ids, err := m.Tokenizer.Encode(r.Text)
	if err != nil {
		return err
	}
	longest := r.Lengths[len(r.Lengths)-1]
	if len(ids) < longest {
		return fmt.Errorf("the text has %d tokens, and windows of %d were asked for; give a longer text or shorter lengths", len(ids), longest)
	}
	lengths := []int{longest}
	if m.WholePrompts() {
		lengths = r.Lengths
	}
	var list []Sample
	r.due = 0 // what was reckoned before the model was open
	for _, length := range lengths {
		for i := range r.Windows {
			s := Sample{Variant: v.Name, Task: Perplexity, Length: length, Index: i, Tokens: length}
			if !r.done[s.key()] {
				list = append(list, s)
				r.due += cost(0, length)
			}
		}
	}
	r.each = max(r.each, r.due)
	for _, s := range list {
		r.say(v, Perplexity, s.Length)
		start := time.Now()
		from := 0
		if r.Windows > 1 {
			from = s.Index * (len(ids) - longest) / (r.Windows - 1)
		}
		if s.LogLoss, err = logLoss(ctx, m, ids[from:from+s.Length]); err != nil {
			return err
		}
		s.Seconds = time.Since(start).Seconds()
		r.pay(cost(0, s.Length))
		if err := r.Sample(s); err != nil {
			return err
		}
	}
	return nil
}

// logLoss is the mean negative log-probability of each block of a window.
func logLoss(ctx context.Context, m *opened, window []int64) ([]float64, error) {
	if err := m.Reset(); err != nil {
		return nil, err
	}
	step := len(window)
	if !m.WholePrompts() {
		step = Block
	}
	all := make([]float64, len(window)) // of each token; the first is not predicted
	for from := 0; from < len(window); from += step {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		logits, err := m.Forward(window[from:min(from+step, len(window))])
		if err != nil {
			return nil, err
		}
		if err := logLosses(logits, window[from+1:], all[from+1:]); err != nil {
			return nil, err
		}
	}
	var means []float64
	for from := 0; from < len(all); from += Block {
		block := all[max(from, 1):min(from+Block, len(all))]
		if len(block) == 0 {
			break
		}
		sum := 0.0
		for _, x := range block {
			sum += x
		}
		means = append(means, sum/float64(len(block)))
	}
	return means, nil
}

// logLosses writes what each row of logits says of the token behind it.
func logLosses(logits lm.Logits, next []int64, into []float64) error {
	const parts = 8
	rows := min(len(logits.Data)/logits.Vocabulary, len(next))
	var errs [parts]error
	var group sync.WaitGroup
	for part := range parts {
		group.Go(func() {
			var scores []float64
			for i := part; i < rows; i += parts {
				var err error
				scores, err = sample.LogSoftmax(scores[:0], logits.Data[i*logits.Vocabulary:][:logits.Vocabulary])
				if err != nil {
					errs[part] = err
					return
				}
				if into[i] = -scores[next[i]]; math.IsNaN(into[i]) {
					errs[part] = fmt.Errorf("the model gives scores that are not numbers")
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
