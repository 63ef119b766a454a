package rotation

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// In a model that rotates tokens by their index, calls of other lengths may rotate the same token
// differently. Nothing but the tables was compared to see that. What it is, is read from the rotation of
// a few tokens in calls of two lengths: from one token to the next it does not depend on where the
// positions begin, and not on factors.

// Change says that a rotation is another one in longer calls.
type Change struct {
	value  string // whose rows change
	tokens int64  // the largest number of tokens for which they do not
}

// Error says what was seen.
func (c *Change) Error() string {
	return fmt.Sprintf("the same token is rotated differently in calls of more than %d tokens (by %q)", c.tokens, short.Name(c.value))
}

// Followed is a change of frequencies, which LongRoPE or dynamic NTK may be.
type Followed struct{ error }

// Unwrap returns the reason.
func (f Followed) Unwrap() error { return f.error }

// Explain says of a rotation that changes with the length of a call what changes.
func (r *Rotator) Explain(ctx context.Context, change *Change) error {
	short := max(change.tokens, 4)
	long := min(4*short+1, r.Tables.limit+1)
	var powers decay
	reach := min(r.Tables.limit, 4095)
	if _, err := r.upTo(reach, reach).Measure(ctx); errors.As(err, &powers) {
		return fmt.Errorf("%w; and which token has position 0 depends on the length of the call", powers)
	}
	near, err := r.firstTokens(ctx, short)
	if err != nil {
		return orChange(err, change)
	}
	far, err := r.firstTokens(ctx, long)
	if err != nil {
		return orChange(err, change)
	}
	for c := range near {
		if a, b := near[c].step, far[c].step; differ(a, b) {
			return Followed{fmt.Errorf("in calls of %d tokens channel %d turns by %.6g per position, in calls of %d by %.6g; this looks like %s", short, c, a, long, b, OnceForAll)}
		}
	}
	for c := range near {
		if a, b := near[c].begin, far[c].begin; differ(a, b) {
			return fmt.Errorf("%w: channel %d of the first token is turned by %.6g in calls of %d tokens and by %.6g in calls of %d, and from token to token by %.6g in both; so the token with position 0 depends on the length of the call",
				change, c, a, short, b, long, near[c].step)
		}
	}
	for c := range near {
		if a, b := near[c].size, far[c].size; differ(a, b) {
			guess := ""
			if !differ(b/a, math.Log(float64(long))/math.Log(float64(short))) {
				guess = "; this looks like a log-n factor"
			}
			return fmt.Errorf("%w: channel %d of the second token is multiplied by %.6g in calls of %d tokens and by %.6g in calls of %d%s", change, c, a, short, b, long, guess)
		}
	}
	return change
}

// orChange returns the error of an evaluation that was stopped, and else the change.
func orChange(err error, change *Change) error {
	if bisect.Ended(err) {
		return err
	}
	return change
}

// differ reports whether two measured angles or sizes are not the same.
func differ(a, b float64) bool { return math.Abs(a-b) > 1e-4*math.Max(math.Abs(a), 1e-2) }

// turn is what becomes of one channel of the first tokens.
type turn struct {
	begin float64 // the angle of the first token, in radians
	step  float64 // from the first to the second
	size  float64 // of the second
}

// firstTokens evaluates the first two tokens in a call of some length.
func (r *Rotator) firstTokens(ctx context.Context, length int64) ([]turn, error) {
	call := r.upTo(length-1, length-1)
	m, err := call.alike(ctx, []int64{0, 1}, 1e-7)
	if err != nil {
		return nil, err
	}
	out := make([]turn, len(m))
	for c := range m {
		partner, most := c, 0.0 // the channel that most of it turns into
		for _, at := range m[c][0] {
			for to, v := range at.inOrder() {
				if to != c && math.Abs(v) > most {
					partner, most = to, math.Abs(v)
				}
			}
		}
		var angles [2]float64
		for p, at := range m[c][0] {
			own, other := at[c], 0.0
			if partner != c {
				other = at[partner]
			}
			angles[p], out[c].size = math.Atan2(other, own), math.Hypot(own, other)
		}
		out[c].begin, out[c].step = angles[0], math.Remainder(angles[1]-angles[0], 2*math.Pi)
	}
	return out, nil
}

// follows says of the rotation in a model with a cache how fast it turns in calls of two lengths, nil
// where that is the same. The fit is of neither: frequencies that follow every length have none.
func (r *Rotator) follows(ctx context.Context, fit *Matrix) error {
	if !r.Loaded.Table.Past || r.Loaded.Table.Static != (dim.Point{}) || r.Tables != nil || r.Precision.Epsilon() > ir.Float32eps {
		return nil
	}
	const few, many = 1, 1000
	near, err := r.steps(ctx, fit, few)
	if err != nil {
		return nil // the fit failed for another reason
	}
	far, err := r.steps(ctx, fit, many)
	if err != nil {
		return nil
	}
	for x, step := range near {
		if math.Abs(far[x]-step) > 1e-3*math.Abs(step)+1e-6 { // float32 rounds the angles of far positions
			return fmt.Errorf("with %d cached token, pair %d turns by %.6g per position, with %d by %.6g; so frequencies depend on the length, which looks like %s", few, x, step, many, far[x], OnceForAll)
		}
	}
	return nil
}

// steps are the angles from one token to the next, of each pair, in a call with some cached tokens.
func (r *Rotator) steps(ctx context.Context, fit *Matrix, past int64) ([]float64, error) {
	positions := []int64{1, 2}
	if r.Position == nil { // they follow from the past
		positions = []int64{past, past + 1}
	}
	y, err := r.firstChannels(ctx, fit, past, positions)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(fit.Encoding.Frequencies))
	for x := range out {
		a, b := PairAt(fit.Encoding, x)
		angle := func(i int) float64 { return math.Atan2(y[i][b], y[i][a]) }
		out[x] = math.Remainder(angle(1)-angle(0), 2*math.Pi)
	}
	return out, nil
}
