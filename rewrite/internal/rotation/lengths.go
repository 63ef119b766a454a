package rotation

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// LongRoPE and dynamic NTK turn by other frequencies from some length on. Where a
// condition chooses between two tables, both are measured (chosen.go). Where the
// frequencies are computed by the length, no encoding describes the site, and it is
// kept. What is said of it names the length and what lies on both sides.

// OnceForAll says what to do about such a model.
const OnceForAll = "LongRoPE and dynamic NTK do so: export the model with the frequencies that hold up to there, and give the method with --scaling"

// turn is what one call does to a token at position 1.
type turn struct {
	frequencies []float64
	gain        float64
}

// turn reads it with so many cached tokens, in a call with these positions, 1 the first.
func (r *Rotator) turn(ctx context.Context, fit *Matrix, past int64, positions ...int64) (turn, error) {
	probe := make([]float32, r.In.Channels)
	e := fit.Encoding
	for x := range e.Frequencies {
		a, _ := PairAt(e, x)
		probe[a] = 1
	}
	before := r.past
	defer func() { r.past = before }()
	r.past = past
	y, err := r.apply(ctx, [][]float32{probe}, positions)
	if err != nil {
		return turn{}, err
	}
	t := turn{}
	for x := range e.Frequencies {
		a, b := PairAt(e, x)
		cos, sin := y[0][0][0][a], y[0][0][0][b]
		t.frequencies = append(t.frequencies, math.Atan2(sin, cos))
		t.gain = math.Hypot(sin, cos)
	}
	return t, nil
}

// differs returns the pair that turns most differently, −1 where the gain alone
// does, and whether anything differs.
func (t turn) differs(other turn) (pair int, is bool) {
	pair, most := -1, 1e-5
	for i, w := range t.frequencies {
		if d := math.Abs(w-other.frequencies[i]) / math.Max(math.Abs(w), 1e-6); d > 1.001*most {
			pair, most, is = i, d, true
		}
	}
	return pair, is || math.Abs(t.gain-other.gain) > 1e-5*t.gain
}

// switches looks for the length from which on the rotation is another one, by
// the number of cached tokens and by the largest position of a call. The error
// says what was found, nil where nothing was.
func (r *Rotator) switches(ctx context.Context, fit *Matrix) error {
	if r.Position == "" || len(fit.Encoding.Frequencies) == 0 || r.Precision.Epsilon() > ir.Float32eps {
		return nil
	}
	type reason struct {
		what string
		most int64
		turn func(n int64) (turn, error)
	}
	var reasons []reason
	if r.Loaded.Table.Past {
		reasons = append(reasons, reason{"cached tokens", dim.Longest, func(n int64) (turn, error) { return r.turn(ctx, fit, n, 1) }})
	}
	// Frequencies that go on changing with the length are those of the fit at its own largest position.
	reasons = append(reasons, reason{"as the largest position of a call", ir.TopPosition, func(n int64) (turn, error) { return r.turn(ctx, fit, 0, 1, n) }})
	for _, by := range reasons {
		low, high := int64(1), min(by.most, fit.Limit)
		near, err := by.turn(low)
		if err != nil {
			return nil // what is wrong has another reason
		}
		far, err := by.turn(high)
		if err != nil {
			continue
		}
		if _, is := near.differs(far); !is {
			continue
		}
		_, nearOther := near.differs(turn{fit.Encoding.Frequencies, near.gain})
		if _, is := far.differs(turn{fit.Encoding.Frequencies, far.gain}); is && nearOther {
			continue // positions themselves are others
		}
		most, err := Largest(low, high, func(n int64) (bool, error) {
			t, err := by.turn(n)
			if err != nil {
				return false, err
			}
			_, is := near.differs(t)
			if is {
				far = t
			}
			return !is, nil
		})
		if err != nil {
			return nil
		}
		at := fmt.Sprintf("with up to %d %s", most, by.what)
		if pair, _ := near.differs(far); pair >= 0 {
			return fmt.Errorf("%s pair %d turns by %.6g per position, with more by %.6g; %s", at, pair, near.frequencies[pair], far.frequencies[pair], OnceForAll)
		}
		return fmt.Errorf("%s the rotation multiplies by %.6g, with more by %.6g; %s", at, near.gain, far.gain, OnceForAll)
	}
	return nil
}

// until returns the number of tokens up to which a table's first rows are those
// that it has with few, 0 where it is not the number of tokens that changes them.
func (t table) until(few, most int64, compute func(dim.Point) (*tables, error)) int64 {
	rows := func(length int64) engine.Tensor {
		some, err := compute(dim.Point{B: 1, L: length})
		if err != nil {
			return engine.Tensor{}
		}
		places := make([]int64, few)
		for i := range places {
			places[i] = int64(i)
		}
		for _, other := range some.list {
			if other.name == t.name {
				return other.rows(places, 1)
			}
		}
		return engine.Tensor{}
	}
	near := rows(few)
	same := func(length int64) (bool, error) {
		far := rows(length)
		return len(far.Data) == len(near.Data) && sameNumbers(near, far), nil
	}
	if is, _ := same(most); is {
		return 0
	}
	n, _ := Largest(few, most, same)
	return n
}
