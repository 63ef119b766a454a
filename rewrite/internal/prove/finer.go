package prove

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// A table of cosines may be made of frequencies with more digits than float32 has. Any
// implementation in float32 rounds them, the op too, and at far positions that is more than all
// its other errors. So what this rounding alone changes counts among the errors of a plain
// implementation.

// magnified is how many times the rounding of the frequencies is added to them, so that the op
// shows it among its other errors. What it changes is still small enough to grow in proportion.
const magnified = 64

// loadMagnified loads the op with frequencies that are off by magnified times their rounding, nil
// where float32 holds those of the site.
func loadMagnified(ctx context.Context, ev *eval.Evaluator, s *site.Sized, measured *measure.Measured) (*eval.Loaded, error) {
	if measured.Finer == nil {
		return nil, nil
	}
	binding, err := lower.Bind(s, measured)
	if err != nil {
		return nil, err
	}
	a := measured.Attention
	frequencies := make([]float64, len(a.Encoding.Frequencies))
	for i, rounded := range a.Encoding.Frequencies {
		frequencies[i] = rounded + magnified*(rounded-measured.Finer[i])
	}
	a.Encoding.Frequencies = frequencies
	nodes, constants, err := lower.Nodes(binding, a, lower.ExtraInputs{})
	if err != nil {
		return nil, err
	}
	return loadOp(ctx, ev, s, measured, nodes, constants)
}

// addRounding compares the op with the one of other frequencies, and adds what their rounding changes.
func (e *ResultErrors) addRounding(moved, op engine.Tensor, counts func(i int64) bool) {
	x, y := moved.Values(), op.Values()
	for i := range min(len(x), len(y)) {
		if counts(int64(i)) {
			e.addPlainError((x[i] - y[i]) / magnified)
		}
	}
}
