package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// What numbers can miss of a mask is a rule that shows in rare rows: one length, one padding, one query. Such
// rules are small programs over integers, so small calls are tried without sampling: each number of cached and
// new tokens up to width, and of each of them every padding.

const (
	mostRuns = 200 // of the calls of one number of tokens, where each takes a few rows only
)

// Cases say what happens to queries in some call, however rare it is. What a query without keys gets is not measured.
type Cases struct {
	RealWithoutKeys   bool // a token that is not padding sees no key
	PaddedWithoutKeys bool // a padded token sees no key, in a row that is not all padding
	RealSeesPadded    bool // a token that is not padding sees a padded one
	Later             bool // there is a call with cached tokens
	LaterSeesBehind   bool // there, token i of the call sees a key behind the first i + 1
}

// FromFirst reports whether later calls see keys as if nothing were cached: token i of the call the first i + 1 keys,
// as a causal mask aligned at its beginning shows them.
func (c Cases) FromFirst() bool { return c.Later && !c.LaterSeesBehind }

// note adds what happens in a sample. Without a padding mask other inputs, such as token ids, may say what is padding;
// a hidden state that hides keys may do so from any query.
func (s *Scorer) note(fit *Fit, smp Sample) {
	if s.mayHide() {
		return
	}
	total, told := smp.Pt.Keys(), s.Mask != "" || len(s.Others) == 0
	for r := range smp.out {
		_, b, i := s.place(smp.Pt, r)
		keys, row := fit.Shown(smp, r, b, i), smp.Mask[b*total:(b+1)*total]
		real := told && row[smp.Pt.P+i] != 0
		if real && smp.Pt.P > 0 {
			fit.Cases.Later = true
			for j := i + 1; j < total && !fit.Cases.LaterSeesBehind; j++ {
				fit.Cases.LaterSeesBehind = keys.Has(j)
			}
		}
		switch none := keys.First() < 0; {
		case none && real:
			fit.Cases.RealWithoutKeys = true
		case none && slices.Contains(row, 1):
			fit.Cases.PaddedWithoutKeys = true
		case real && !fit.Cases.RealSeesPadded:
			for j, there := range row {
				fit.Cases.RealSeesPadded = fit.Cases.RealSeesPadded || there == 0 && keys.Has(int64(j))
			}
		}
	}
}

// smallCalls compares the fit with every small call.
func (s *Scorer) smallCalls(ctx context.Context, fit *Fit) (e Exact, err error) {
	rng := rand.New(rand.NewPCG(31, 32))
	for e.Width < dim.SmallWidth {
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
			if err := s.compareCalls(ctx, rng, fit, pt, slices.Collect(slices.Chunk(paddings, int(each))), &e); err != nil {
				return e, err
			}
		}
		e.Width = total
	}
	return e, nil
}

// callsOf returns the calls of so many tokens that the model can compute: of each number of new ones.
func (s *Scorer) callsOf(total int64) (calls []dim.Point) {
	for pt := range dim.SmallCalls {
		if pt.Keys() == total && (!s.whole || pt.P == 0) && s.clamped(pt) == pt {
			calls = append(calls, pt)
		}
	}
	return calls
}

// atOnce is how many small calls are asked for together.
const atOnce = 16

// compareCalls compares the fit with calls of so many tokens, whose rows have these paddings: a call for each list.
// It counts the rows in e.
func (s *Scorer) compareCalls(ctx context.Context, rng *rand.Rand, fit *Fit, pt dim.Point, lists [][][]int64, e *Exact) error {
	notRun := func(pt dim.Point, err error) error { return eval.NotRun{Why: fmt.Errorf("with %v: %w", pt, err)} }
	for some := range slices.Chunk(lists, atOnce) {
		var calls []smallCall
		var runs []eval.Run
		var unmade error // of the call behind these, which are compared first
		for _, paddings := range some {
			c, err := s.smallCall(rng, pt, paddings)
			if err != nil {
				unmade = notRun(c.Pt, err)
				break
			}
			_, sizes := s.sizes(c.Pt)
			calls, runs = append(calls, c), append(runs, eval.Run{Loaded: s.Loaded, Pt: sizes, Feeds: c.feeds})
		}
		results, failed := eval.RunAll(ctx, runs)
		for i, result := range results {
			c := calls[i]
			var err error
			if c.in, c.out, err = s.rows(c.Pt, c.scores, result); err != nil {
				return notRun(c.Pt, err)
			}
			if fit.Mask.Bias {
				c.Base = c.out // the scores are zeros
			}
			if err := s.agrees(fit, c.Sample); err != nil {
				return err
			}
			s.note(fit, c.Sample)
			e.Rows += int64(len(some[i]))
		}
		if failed != nil {
			return notRun(calls[len(results)].Pt, notEvaluated(failed))
		}
		if unmade != nil {
			return unmade
		}
	}
	return nil
}

// smallCall is a call with scores of zero that was not evaluated yet.
type smallCall struct {
	Sample
	scores []float32
	feeds  map[string]engine.Tensor
}

// smallCall makes a call of which each row has a padding of its own.
func (s *Scorer) smallCall(rng *rand.Rand, pt dim.Point, paddings [][]int64) (c smallCall, err error) {
	pt.B = max(int64(len(paddings)), s.Loaded.Table.Static.B)
	c.Pt, c.Mask = pt, slices.Concat(paddings...)
	for int64(len(c.Mask)) < pt.B*pt.Keys() {
		c.Mask = append(c.Mask, paddings[0]...)
	}
	given, err := s.given(rng, pt, c.Mask)
	if err == nil {
		c.scores, err = s.zeros(pt)
	}
	if err == nil {
		c.feeds, err = s.feeds(pt, c.scores, given)
	}
	return c, err
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
