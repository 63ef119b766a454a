package main

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// step is one token of one choice.
type step struct {
	choice int
	token  lm.Token
	err    error
}

// again is how long a choice waits that the full queue refused while another one of its request had begun.
const again = 20 * time.Millisecond

// steps generates all choices of a job at the same time. The first error is the last element; of a context that has
// ended it is the cause. A full queue refuses a job as a whole or not at all: once a token was given, a choice
// that is refused tries again.
func (s *server) steps(ctx context.Context, j job) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		var all sync.WaitGroup
		defer all.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		steps := make(chan step)
		start := func(choice int, after time.Duration) {
			all.Go(func() {
				if after > 0 {
					select {
					case <-time.After(after):
					case <-ctx.Done():
						return
					}
				}
				o := j.options
				o.Sample = ofChoice(*o.Sample, j.seed, choice)
				for token, err := range s.generate(ctx, j.input, o) {
					select {
					case steps <- step{choice, token, err}:
					case <-ctx.Done():
						return
					}
				}
			})
		}
		for i := range j.choices {
			start(i, 0)
		}
		begun := false
		for left := j.choices; left > 0; {
			var next step
			select {
			case next = <-steps:
			case <-ctx.Done():
				next.err = ctx.Err()
			}
			if begun && errors.Is(next.err, lm.ErrQueueFull) {
				start(next.choice, again)
				continue
			}
			begun = true
			if next.err != nil && ctx.Err() != nil {
				next.err = context.Cause(ctx)
			}
			if !yield(next, next.err) || next.err != nil {
				return
			}
			if next.token.Finish != "" {
				left--
			}
		}
	}
}
