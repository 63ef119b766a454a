package rotation

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// LongRoPE and dynamic NTK use other frequencies from some length on. Where a condition
// chooses between two tables, both are measured (package measure, conditional.go), and where
// they follow the largest position of a call, by it (byreach.go). All else is kept, and the
// reason names the length, and the frequencies up to it and beyond.

// OnceForAll tells the user what to do with such a model.
const OnceForAll = "LongRoPE or dynamic NTK; export the model with the frequencies that hold up to there, and give the method with --scaling"

// oneStep is the rotation by one position: what one call does to a token at position 1.
// Its frequencies are the angles, in radians.
type oneStep struct {
	frequencies []float64
	gain        float64
}

// firstChannels returns what becomes, at each position, of a vector that is 1 in the first channel of each
// pair. There are past cached tokens.
func (r *Rotator) firstChannels(ctx context.Context, fit *Matrix, past int64, positions []int64) ([][]float64, error) {
	probe := make([]float32, r.In.Channels)
	for x := range fit.Encoding.Frequencies {
		a, _ := PairAt(fit.Encoding, x)
		probe[a] = 1
	}
	last := r.past
	defer func() { r.past = last }()
	r.past = past
	y, err := r.apply(ctx, [][]float32{probe}, positions)
	if err != nil {
		return nil, err
	}
	return y[0][0], nil
}

// oneStep evaluates that with past cached tokens, in a call with these positions, of
// which the first is 1.
func (r *Rotator) oneStep(ctx context.Context, fit *Matrix, past int64, positions ...int64) (oneStep, error) {
	y, err := r.firstChannels(ctx, fit, past, positions)
	if err != nil {
		return oneStep{}, err
	}
	t := oneStep{}
	for x := range fit.Encoding.Frequencies {
		a, b := PairAt(fit.Encoding, x)
		cos, sin := y[0][a], y[0][b]
		t.frequencies = append(t.frequencies, math.Atan2(sin, cos))
		t.gain = math.Hypot(sin, cos)
	}
	return t, nil
}

// differs returns the pair whose frequency differs most, −1 where only the gain differs,
// and whether anything differs.
func (t oneStep) differs(other oneStep) (pair int, is bool) {
	pair, most := -1, 1e-5
	for i, w := range t.frequencies {
		if d := math.Abs(w-other.frequencies[i]) / math.Max(math.Abs(w), 1e-6); d > 1.001*most {
			pair, most, is = i, d, true
		}
	}
	return pair, is || math.Abs(t.gain-other.gain) > 1e-5*t.gain
}

// turns returns a pair that is rotated, and whether one is.
func (t oneStep) turns() (pair int, is bool) {
	for i, w := range t.frequencies {
		if math.Abs(w) > 1e-5 {
			return i, true
		}
	}
	return 0, false
}

// switches searches the length from which on the rotation is another one: the number of
// cached tokens, or the largest position of a call. The error tells what was found, and
// is nil where nothing was.
func (r *Rotator) switches(ctx context.Context, fit *Matrix) error {
	if r.Position == nil && (r.Tables != nil || r.Places > 0) || len(fit.Encoding.Frequencies) == 0 || r.Precision.Epsilon() > ir.Float32eps {
		return nil
	}
	if r.Position == nil { // by how many tokens there are, cached ones included
		return r.switchesByTokens(ctx, fit)
	}
	type reason struct {
		what string
		most int64
		step func(position, n int64) (oneStep, error)
	}
	var reasons []reason
	if r.Loaded.Table.Past {
		reasons = append(reasons, reason{"cached tokens", dim.Longest, func(position, n int64) (oneStep, error) { return r.oneStep(ctx, fit, n, position) }})
	}
	// Frequencies that change with every length: the fit has those of its largest position.
	reasons = append(reasons, reason{"as the largest position of a call", ir.TopPosition, func(position, n int64) (oneStep, error) { return r.oneStep(ctx, fit, 0, position, n) }})
	for _, by := range reasons {
		first := func(n int64) (oneStep, error) { return by.step(1, n) }
		low, high := int64(1), min(by.most, fit.Limit)
		near, err := first(low)
		if err != nil {
			return nil // the fit failed for another reason
		}
		far, err := first(high)
		if err != nil {
			continue
		}
		if _, is := near.differs(far); !is {
			continue
		}
		_, nearOther := near.differs(oneStep{fit.Encoding.Frequencies, near.gain})
		if _, is := far.differs(oneStep{fit.Encoding.Frequencies, far.gain}); is && nearOther {
			continue // the fit agrees with neither: the length is not the reason
		}
		most, err := bisect.Largest(low, high, func(n int64) (bool, error) {
			t, err := first(n)
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
		if begin, err := by.step(0, most+1); err == nil {
			if pair, is := begin.turns(); is {
				return fmt.Errorf("with up to %d %s nothing is rotated at position 0, with more pair %d is rotated by %.6g there: positions are shifted by a number that is not whole", most, by.what, pair, begin.frequencies[pair])
			}
		}
		return near.becomes(far, fmt.Sprintf("%d %s", most, by.what))
	}
	return nil
}

// becomes says that up to some number of tokens the rotation is t, and beyond it another one.
func (t oneStep) becomes(other oneStep, most string) error {
	if pair, _ := t.differs(other); pair >= 0 {
		return fmt.Errorf("with up to %s pair %d rotates by %.6g per position, with more by %.6g; this looks like %s", most, pair, t.frequencies[pair], other.frequencies[pair], OnceForAll)
	}
	return fmt.Errorf("with up to %s the rotation multiplies by %.6g, with more by %.6g; this looks like %s", most, t.gain, other.gain, OnceForAll)
}

// mostInCall is how many tokens a call has at most in which the rotation of its first is looked at.
const mostInCall = 4096

// switchesByTokens is switches for positions that follow from the number of cached tokens: the same
// token is seen in calls of more and more tokens.
func (r *Rotator) switchesByTokens(ctx context.Context, fit *Matrix) error {
	first := func(tokens int64) (oneStep, error) {
		positions := make([]int64, tokens)
		for i := range positions {
			positions[i] = int64(i) + 1 // behind one cached token
		}
		return r.oneStep(ctx, fit, 0, positions...)
	}
	near, err := first(1)
	if err != nil {
		return nil // the fit failed for another reason
	}
	far := near
	most, err := bisect.Largest(1, min(mostInCall, fit.Limit), func(tokens int64) (bool, error) {
		t, err := first(tokens)
		if err != nil {
			return false, err
		}
		_, is := near.differs(t)
		if is {
			far = t
		}
		return !is, nil
	})
	if _, is := near.differs(far); err != nil || !is {
		return nil
	}
	return near.becomes(far, fmt.Sprintf("%d tokens, cached ones included,", most+1))
}
