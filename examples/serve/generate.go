package main

import (
	"context"
	"iter"
	"sync"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// step is one token of one choice.
type step struct {
	choice int
	token  lm.Token
	err    error
}

// steps generates all choices of a job at the same time. The first error is the last element; of a context that has
// ended it is the cause.
func (s *server) steps(ctx context.Context, j job) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		var all sync.WaitGroup
		defer all.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		steps := make(chan step)
		for i := range j.choices {
			o := j.options
			o.Sample = ofChoice(*o.Sample, j.seed, i)
			all.Go(func() {
				for token, err := range s.generate(ctx, j.input, o) {
					select {
					case steps <- step{i, token, err}:
					case <-ctx.Done():
						return
					}
				}
			})
		}
		for left := j.choices; left > 0; {
			var next step
			select {
			case next = <-steps:
			case <-ctx.Done():
				next.err = ctx.Err()
			}
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
