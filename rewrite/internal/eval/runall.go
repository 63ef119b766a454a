package eval

import (
	"cmp"
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Run is a piece, the sizes that it is evaluated at, and what is fed to it.
type Run struct {
	*Loaded
	Pt    dim.Point
	Feeds map[string]engine.Tensor
}

// togetherBytes is how much is fed in one message to the engine, but for a run that takes more by itself.
const togetherBytes = 4 << 20

// RunAll evaluates pieces, one after the other, as Loaded.Run does. It returns the results of each up to the first
// that fails: the error is that of the run behind them. Small runs go to the engine together, which takes less time.
func RunAll(ctx context.Context, runs []Run) (results []map[string]engine.Tensor, _ error) {
	var some batch
	for _, r := range runs {
		calls, err := r.calls()
		if err != nil {
			results, early := some.run(ctx, results)
			return results, cmp.Or(early, err)
		}
		size := bytesOf(calls)
		if some.bytes > 0 && some.bytes+size > togetherBytes {
			if results, err = some.run(ctx, results); err != nil {
				return results, err
			}
		}
		some.add(r, calls, size)
	}
	return some.run(ctx, results)
}

// calls are the runs at the model's own sizes that evaluate the piece.
func (r Run) calls() ([]engine.Call, error) {
	if r.Table.Static != (dim.Point{}) {
		return r.staticCalls()
	}
	call, err := r.call(r.Pt, r.Feeds)
	return []engine.Call{call}, err
}

// join makes the result of those of the calls.
func (r Run) join(results []map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	if r.Table.Static != (dim.Point{}) {
		return r.joinStatic(results)
	}
	return results[0], nil
}

func bytesOf(calls []engine.Call) (n int) {
	for _, c := range calls {
		for _, t := range c.Feeds {
			n += len(t.Data)
		}
	}
	return n
}

// batch is runs that go to the engine together.
type batch struct {
	runs  []Run
	of    []int // how many calls each has
	calls []engine.Call
	bytes int
}

func (b *batch) add(r Run, calls []engine.Call, bytes int) {
	b.runs, b.of, b.calls = append(b.runs, r), append(b.of, len(calls)), append(b.calls, calls...)
	b.bytes += bytes
}

// run appends the results of the runs, of which none is left then.
func (b *batch) run(ctx context.Context, results []map[string]engine.Tensor) ([]map[string]engine.Tensor, error) {
	got, failed := engine.RunAll(ctx, b.calls)
	for i, r := range b.runs {
		if len(got) < b.of[i] {
			break
		}
		result, err := r.join(got[:b.of[i]])
		if err != nil {
			return results, err
		}
		results, got = append(results, result), got[b.of[i]:]
	}
	*b = batch{}
	return results, failed
}
