package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/control"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// What numbers can miss of a mask is a rule that shows in rare rows: one length, one padding, one query. Such
// rules are small programs over integers, so small calls are tried without sampling: each number of cached and
// new tokens up to width, and of each of them every padding.

const (
	copyWidth  = 6   // tokens of the longest call of copies: one more than their largest number
	pairsWidth = 4   // the same where every two paddings are tried together
	mostRuns   = 200 // of the calls of one number of tokens, where each takes a few rows only
)

// smallCalls compares the fit with every call of up to so many tokens.
func (s *Scorer) smallCalls(ctx context.Context, fit *Fit, most int64) (e Exact, err error) {
	rng := rand.New(rand.NewPCG(31, 32))
	for e.Width < most {
		total := e.Width + 1
		paddings := s.paddings(total)
		each := s.together(int64(len(paddings)))
		if each < int64(len(paddings)) && total*(int64(len(paddings))/each) > mostRuns {
			break
		}
		calls := s.callsOf(total)
		if len(calls) == 0 {
			break
		}
		for _, pt := range calls {
			for some := range slices.Chunk(paddings, int(each)) {
				if err := s.smallCall(ctx, rng, fit, pt, some); err != nil {
					return e, err
				}
				e.Rows += int64(len(some))
			}
		}
		e.Width = total
	}
	return e, nil
}

// callsOf returns the calls of so many tokens that the model can compute: of each number of new ones.
func (s *Scorer) callsOf(total int64) (calls []dim.Point) {
	for pt := range control.Calls(total) {
		if pt.Keys() == total && (!s.whole || pt.P == 0) && s.clamped(pt) == pt {
			calls = append(calls, pt)
		}
	}
	return calls
}

// smallCall compares the fit with a call of which each row has a padding of its own.
func (s *Scorer) smallCall(ctx context.Context, rng *rand.Rand, fit *Fit, pt dim.Point, paddings [][]int64) error {
	pt.B = max(int64(len(paddings)), s.Loaded.Table.Static.B)
	mask := slices.Concat(paddings...)
	for int64(len(mask)) < pt.B*pt.Keys() {
		mask = append(mask, paddings[0]...)
	}
	smp, err := s.sample(ctx, rng, fit, pt, mask, func() float64 { return 0 })
	if err != nil {
		return control.NotRun{Why: fmt.Errorf("with %v: %w", pt, err)}
	}
	return s.agrees(fit, smp)
}

// paddings returns every padding of a row of tokens, or none in three rows where no input tells of padding.
func (s *Scorer) paddings(total int64) [][]int64 {
	if s.Mask == "" {
		return slices.Repeat([][]int64{slices.Repeat([]int64{1}, int(total))}, 3)
	}
	list := make([][]int64, 1<<total)
	for n := range list {
		for j := range total {
			list[n] = append(list[n], int64(n)>>j&1)
		}
	}
	return list
}

// together is how many rows of a batch are evaluated in one run: all, if the model does not say otherwise.
func (s *Scorer) together(rows int64) int64 {
	t := s.Loaded.Table
	if dims := t.Inputs[s.Mask]; s.Mask != "" && dims[0] == dim.ConstantExtent(1) {
		return 1 // one row of padding for the whole batch
	}
	if t.Static.B > 0 {
		return min(rows, t.Static.B)
	}
	return rows
}

// pairsOfRows compares the fit with every two paddings in a batch, where the graph does not show that a row
// depends on nothing of another one, and with batches of other sizes.
func (s *Scorer) pairsOfRows(ctx context.Context, fit *Fit, e *Exact) error {
	if s.Loaded.Table.Static.B > 0 || s.Mask == "" || s.together(2) < 2 {
		return nil
	}
	rng := rand.New(rand.NewPCG(35, 36))
	dims, err := s.Evaluator.Dims(ctx, s.Loaded.Piece)
	if err != nil && bisect.Ended(err) {
		return err
	}
	most := int64(pairsWidth)
	apart := err == nil && control.RowsApart(s.Loaded.Piece, dims)
	if apart {
		most = 3 // of which batches of every size up to five are tried
	}
	for total := int64(1); total <= most; total++ {
		paddings := s.paddings(total)
		calls := s.callsOf(total)
		if total == pairsWidth {
			calls = calls[len(calls)-1:] // all tokens in one call
		}
		for _, pt := range calls {
			for i, first := range paddings {
				rows := [][]int64{first}
				for j := 0; apart && j < i%5; j++ {
					rows = append(rows, paddings[(i+j+1)%len(paddings)])
				}
				for _, second := range paddings {
					if !apart {
						rows = [][]int64{first, second}
					}
					if err := s.smallCall(ctx, rng, fit, pt, rows); err != nil {
						return err
					}
					if e.Rows += int64(len(rows)); apart {
						break
					}
				}
			}
		}
	}
	return nil
}
