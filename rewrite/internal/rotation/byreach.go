package rotation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/search"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// torch.export has no branch for LongRoPE: the graph chooses frequencies by the largest
// position of a call. They are measured in calls of which one more token stands at a chosen
// position, so that all others are turned by the frequencies that belong to it. (Dynamic NTK
// computes them anew for every length, with an exponent that is rounded to float32. At far
// positions that is another rotation than the op's, by more than the model's own rounding.)

// Reached is a rotation that has other frequencies in calls that reach farther than some
// number of positions.
type Reached struct {
	Near, Far *Matrix
	Trained   int64 // that number
}

// ByReach measures such a rotation. The error says what was found instead.
func (r *Rotator) ByReach(ctx context.Context) (*Reached, error) {
	if r.Position == "" || r.Components > 0 || r.Precision != rope.Float32 || r.Loaded.Table.Static.L > 0 {
		return nil, fmt.Errorf("its positions are no input of the graph in float32 with an open length")
	}
	limit, err := r.limit(ctx)
	if err != nil {
		return nil, err
	}
	first, err := r.upTo(1, 0).Measure(ctx) // which channels turn together
	if err != nil {
		return nil, err
	}
	if len(first.Encoding.Frequencies) == 0 {
		return nil, fmt.Errorf("it turns no channels")
	}
	begin, err := r.oneStep(ctx, first, 0, 1)
	if err != nil {
		return nil, err
	}
	last, err := search.Largest(1, limit, func(n int64) (bool, error) {
		t, err := r.oneStep(ctx, first, 0, 1, n)
		if err != nil {
			return false, err
		}
		_, is := begin.differs(t)
		return !is, nil
	})
	if err != nil {
		return nil, err
	}
	if last >= limit {
		return nil, fmt.Errorf("its frequencies are the same in calls up to position %d", limit)
	}
	out := &Reached{Trained: last + 1}
	if out.Near, err = r.upTo(last, 0).Measure(ctx); err != nil {
		return nil, err
	}
	if out.Far, err = r.upTo(limit, limit).Measure(ctx); err != nil {
		return nil, err
	}
	for _, reach := range []int64{last + 1, last + 2, 2*last + 1, 3*last + 7, 10*last + 3, 50_000} {
		if reach <= last || reach >= limit {
			continue
		}
		other, err := r.upTo(reach, reach).Measure(ctx)
		if err != nil {
			return nil, fmt.Errorf("in calls that reach position %d: %w", reach, err)
		}
		if !alike(out.Far, other) {
			return nil, fmt.Errorf("calls that reach position %d turn by other frequencies than those that reach %d", reach, limit)
		}
	}
	return out, nil
}

// upTo returns a rotator of the same branch that evaluates positions up to most, in calls
// that have one more token at the position reach.
func (r *Rotator) upTo(most, reach int64) *Rotator {
	some := *r
	some.most, some.reach, some.order = most, reach, nil
	return &some
}

// alike reports whether two rotations are equal up to what measuring in short calls leaves.
func alike(a, b *Matrix) bool {
	e, f := a.Encoding, b.Encoding
	near := func(x, y float64) bool { return math.Abs(x-y) <= 16*ir.Float32eps*math.Abs(y) }
	return e.Layout == f.Layout && e.Offset == f.Offset && slices.Equal(a.Order, b.Order) && near(a.Factor, b.Factor) &&
		near(e.EffectiveGain(), f.EffectiveGain()) && slices.EqualFunc(e.Frequencies, f.Frequencies, near)
}
