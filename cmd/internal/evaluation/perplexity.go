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

// lastTokens is how many tokens before a length UpTo.Last is about.
const lastTokens = 512

// UpTo is what a window shows up to one length: mean negative log-probabilities, in nats. They are of
// the tokens themselves: a length need not be a multiple of Block.
type UpTo struct {
	Length int     `json:"length"`
	All    float64 `json:"all"`  // of all tokens up to the length but the first, which nothing predicts
	Last   float64 `json:"last"` // of the last 512 of them
}

// windows measures how well a variant predicts windows of the text. A token is predicted from
// those before it, so that the longest window holds all shorter ones, but where the frequencies
// depend on the length of a call. Windows do not overlap, since tokens that two of them share would
// count as seen twice: a text may have room for fewer than are asked for.
func (r *runner) windows(ctx context.Context, v Variant, m *opened) error {
	ids, err := m.model.Tokenizer.Encode(r.Text)
	if err != nil {
		return err
	}
	longest := r.Lengths[len(r.Lengths)-1]
	if len(ids) < longest {
		return fmt.Errorf("the text has %d tokens, too few for windows of %d; give a longer text or shorter lengths", len(ids), longest)
	}
	count := min(r.Windows, len(ids)/longest)
	lengths := []int{longest}
	if m.model.Decoder().WholePrompts() {
		lengths = r.Lengths
	}
	var list []Sample
	r.due = 0 // what was reckoned before the model was open
	for _, length := range lengths {
		for i := range count {
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
		if count > 1 {
			from = s.Index * (len(ids) - longest) / (count - 1)
		}
		losses, err := logLosses(ctx, m, ids[from:from+s.Length])
		if err != nil {
			return err
		}
		s.LogLoss, s.UpTo = blocks(losses), upTo(losses, r.Lengths)
		s.Seconds = time.Since(start).Seconds()
		r.pay(cost(0, s.Length))
		if err := r.Sample(s); err != nil {
			return err
		}
	}
	return nil
}

// logLosses is the negative log-probability of each token of a window; the first is not predicted
// and has 0.
func logLosses(ctx context.Context, m *opened, window []int64) ([]float64, error) {
	if err := m.text.Truncate(0); err != nil {
		return nil, err
	}
	step := len(window)
	if !m.model.Decoder().WholePrompts() {
		step = Block
	}
	all := make([]float64, len(window))
	for from := 0; from < len(window); from += step {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		logits, err := m.text.Forward(context.Background(), lm.Row{Tokens: window[from:min(from+step, len(window))]})
		if err != nil {
			return nil, err
		}
		if err := rowLosses(logits, window[from+1:], all[from+1:]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// blocks is the mean of each block of a window's tokens.
func blocks(losses []float64) (means []float64) {
	for from := 0; from < len(losses); from += Block {
		if block := losses[max(from, 1):min(from+Block, len(losses))]; len(block) > 0 {
			means = append(means, mean(block))
		}
	}
	return means
}

// upTo is what a window shows up to each length that it reaches.
func upTo(losses []float64, lengths []int) (list []UpTo) {
	for _, length := range lengths {
		if length > len(losses) || length < 2 {
			continue
		}
		list = append(list, UpTo{length, mean(losses[1:length]), mean(losses[max(length-lastTokens, 1):length])})
	}
	return list
}

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x
	}
	return m / float64(len(list))
}

// rowLosses writes what each row of logits says of the token behind it.
func rowLosses(logits lm.Logits, next []int64, into []float64) error {
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
					errs[part] = fmt.Errorf("the model's scores are not numbers (NaN)")
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
