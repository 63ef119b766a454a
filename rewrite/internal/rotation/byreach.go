package rotation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// torch.export has no branch for LongRoPE or dynamic NTK: the graph chooses or computes
// frequencies by the largest position of a call. They are measured in calls of which one more
// token stands at a chosen position, so that all others are turned by the frequencies that
// belong to it.

// Reached is a rotation that has other frequencies in calls that reach farther than some
// number of positions: those of Far, or where NTK is not 0 others for every length, which
// follow the formula of dynamic NTK (dynamicntk.go) with this factor.
type Reached struct {
	Near, Far *Matrix
	Trained   int64 // that number
	NTK       float64
}

// ByReach measures such a rotation. The error says what was found instead.
func (r *Rotator) ByReach(ctx context.Context) (*Reached, error) {
	calls, err := r.Calls(ctx)
	if err != nil {
		return nil, err
	}
	begin, err := calls.oneStep(ctx, 1)
	if err != nil {
		return nil, err
	}
	last, err := bisect.Largest(1, calls.limit, func(n int64) (bool, error) {
		t, err := calls.oneStep(ctx, n)
		if err != nil {
			return false, err
		}
		_, is := begin.differs(t)
		return !is, nil
	})
	if err != nil {
		return nil, err
	}
	if last >= calls.limit {
		return nil, fmt.Errorf("its frequencies are the same in calls up to position %d", calls.limit)
	}
	out := &Reached{Trained: last + 1}
	if out.Near, err = r.upTo(last, 0).Measure(ctx); err != nil {
		return nil, err
	}
	if out.Far, err = r.upTo(calls.limit, calls.limit).Measure(ctx); err != nil {
		return nil, err
	}
	for reach := int64(1); reach <= last; reach = next(reach) {
		t, err := calls.oneStep(ctx, reach)
		if err != nil {
			return nil, err
		}
		if _, is := begin.differs(t); is {
			return nil, fmt.Errorf("calls that reach position %d rotate differently from those that reach 1", reach)
		}
	}
	for _, reach := range []int64{last + 1, last + 2, 2*last + 1, 3*last + 7, 10*last + 3, 50_000} {
		if reach <= last || reach >= calls.limit {
			continue
		}
		if r.Precision != rope.Float32 {
			if err := r.agrees(ctx, out.Far, reach); err != nil {
				return nil, err
			}
			continue
		}
		other, err := r.upTo(reach, reach).Measure(ctx)
		if err != nil {
			return nil, fmt.Errorf("in calls that reach position %d: %w", reach, err)
		}
		if !sameKind(out.Far, other) {
			return nil, fmt.Errorf("calls that reach position %d rotate differently from those that reach %d", reach, calls.limit)
		}
		if out.NTK == 0 && !slices.EqualFunc(out.Far.Encoding.Frequencies, other.Encoding.Frequencies, near) {
			if out.NTK, err = calls.dynamicNTK(ctx, out.Near.Encoding, out.Trained); err != nil {
				return nil, err
			}
		}
	}
	if out.NTK == 0 {
		return out, calls.alikeBeyond(ctx, last)
	}
	return out, nil
}

// alikeBeyond returns an error if calls that reach farther than a position do not all rotate alike.
func (c *Calls) alikeBeyond(ctx context.Context, last int64) error {
	far, err := c.oneStep(ctx, c.limit)
	for reach := last + 1; err == nil && reach < c.limit; reach = next(reach) {
		var t oneStep
		if t, err = c.oneStep(ctx, reach); err != nil {
			break
		}
		if _, is := far.differs(t); is {
			err = fmt.Errorf("calls that reach position %d rotate differently from those that reach %d", reach, c.limit)
		}
	}
	return err
}

// next returns what is tried after the calls that reach a position: every short call, and then
// some.
func next(reach int64) int64 {
	if reach < 512 {
		return reach + 1
	}
	return reach + reach/10
}

// agrees checks that a rotation which was measured in far calls is that of calls that reach a position.
// In 16 bits short calls do not tell frequencies well enough to compare them with those of far ones.
func (r *Rotator) agrees(ctx context.Context, far *Matrix, reach int64) error {
	some := r.upTo(reach, reach)
	some.order, some.factors, some.Angles = far.Order, far.Factors, far.Angles
	if err := some.verify(ctx, far, reach); err != nil {
		return fmt.Errorf("in calls that reach position %d: %w", reach, err)
	}
	return nil
}

// upTo returns a rotator of the same branch that evaluates positions up to most, in calls
// that have one more token at the position reach.
func (r *Rotator) upTo(most, reach int64) *Rotator {
	some := *r
	some.most, some.reach, some.order = most, reach, nil
	return &some
}

// sameKind reports whether two rotations are equal but for their frequencies, up to what
// measuring in short calls leaves.
func sameKind(a, b *Matrix) bool {
	e, f := a.Encoding, b.Encoding
	return e.Layout == f.Layout && e.Offset == f.Offset && len(e.Frequencies) == len(f.Frequencies) && slices.Equal(a.Order, b.Order) &&
		near(a.Factor, b.Factor) && near(e.EffectiveGain(), f.EffectiveGain())
}

func near(x, y float64) bool { return math.Abs(x-y) <= 16*ir.Float32eps*math.Abs(y) }
