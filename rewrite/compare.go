package rewrite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/narrow"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// comparison runs the original site, its definition in float64 and the op that
// should replace it.
type comparison struct {
	lifter               *lifter
	site                 *sizedSite
	lift                 *lifted
	original, double, op *loaded
	plain                *loaded // the definition node by node, as a plain implementation does it; nil where the original is that
	bias                 *scorer // makes the model's own bias; nil without
	rng                  *rand.Rand
	proof                *Proof
	precision            rope.Precision          // the original's weakest type
	groups               map[float64]trialErrors // by the size of the hidden states
	unseeing             bool                    // the query of a token that is no padding saw no key
}

// compare proves lowered nodes against the site.
func (l *lifter) compare(ctx context.Context, s *sizedSite, lift *lifted, nodes []*onnx.Node, constants []*onnx.Tensor) (*Proof, error) {
	piece, err := l.graph.source.extractSite(s)
	if err == nil && piece.precision() == rope.BFloat16 {
		// What a fused op rounds on its way nobody can emulate; its definition's
		// nodes round as a plain implementation does.
		piece, err = l.graph.definition.extractSite(s)
	}
	if err != nil {
		return nil, refuse(s.softmax, "the site cannot be evaluated by itself: %v", err)
	}
	original, err := l.load(ctx, piece)
	if err != nil {
		return nil, refuse(s.softmax, "the site does not load: %v", err)
	}
	defer original.session.Close()
	definition, err := l.graph.definition.extractSite(s)
	if err != nil {
		return nil, refuse(s.softmax, "the site's definition cannot be evaluated by itself: %v", err)
	}
	doubleSession, err := l.session(ctx, definition.double(), definition.outputs)
	if err != nil {
		return nil, refuse(s.softmax, "the site does not load in float64: %v", err)
	}
	defer doubleSession.Close()
	op, err := l.loadOp(ctx, s, lift, nodes, constants)
	if err != nil {
		return nil, refuse(s.softmax, "the op that should replace it does not load: %v", err)
	}
	defer op.session.Close()
	c := &comparison{
		lifter: l, site: s, lift: lift,
		original:  original,
		double:    &loaded{session: doubleSession, piece: definition, table: l.table, elem: onnx.Double},
		op:        op,
		rng:       rand.New(rand.NewPCG(7, 8)),
		proof:     &Proof{},
		precision: piece.precision(),
		groups:    map[float64]trialErrors{},
	}
	if c.precision == rope.Float16 || c.precision == rope.Float32 && l.graph.definition != l.graph.source {
		// A fused op may be more exact than a plain implementation.
		m := definition.model(onnx.Float)
		narrow.Emulate(m, onnx.Float16)
		session, err := l.session(ctx, m, definition.outputs)
		if err != nil {
			return nil, refuse(s.softmax, "the site does not load node by node: %v", err)
		}
		defer session.Close()
		c.plain = &loaded{session: session, piece: definition, table: l.table, elem: onnx.Float}
	}
	if lift.attention.Mask.Bias {
		loaded, refusal := l.open(ctx, s.softmax, "the mask", []string{s.softmaxInput()}, []string{s.scores()})
		if refusal != nil {
			return nil, refusal
		}
		defer loaded.session.Close()
		c.bias = &scorer{loaded: loaded, in: s.scores(), out: s.softmaxInput(), heads: lift.layouts.query.heads, extra: lift.layouts.sinks}
	}
	for _, t := range trials(lift) {
		if err := c.trial(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, group := range c.groups {
		for i := range s.results() {
			if err := group[i].judgeLargest(c.precision.Epsilon()); err != nil {
				return nil, refuse(s.softmax, "%s: %v%s", resultNames[i], err, c.hint(i))
			}
		}
		if group[paddedOutput].judgeLargest(c.precision.Epsilon()) != nil {
			c.proof.PaddedDiffer = true
		}
	}
	return c.proof, nil
}

// notRun says that ONNX Runtime does not run one of the three.
type notRun struct {
	which *loaded
	why   error
	*Refusal
}

func (n *notRun) Unwrap() error { return n.Refusal }

// trial runs and judges one trial. Some exports, and some ops, run one row at a
// time only, or no positions that lie behind the tokens' places (their tables
// end at the largest one). Every kind of input must still run: prefill, decode,
// each padding.
func (c *comparison) trial(ctx context.Context, t trial) error {
	errs, err := c.errors(ctx, t, c.original)
	notRunning := func() bool {
		var stopped *notRun
		if !errors.As(err, &stopped) || stopped.which != c.original || t.counts != nil {
			return false
		}
		c.proof.Skipped++
		c.proof.SkippedWhy = stopped.why.Error()
		return true
	}
	if t.pt.B > 1 && c.lift.fixed.B == 0 && notRunning() {
		several := t
		t.pt.B = 1
		if errs, err = c.errors(ctx, t, c.original); err == nil {
			err = c.rows(ctx, several, errs)
		}
	}
	if t.positions < 0 && notRunning() {
		t.positions = t.pt.P
		errs, err = c.errors(ctx, t, c.original)
	}
	if err != nil {
		return err
	}
	c.proof.Cases++
	return c.judge(t, errs)
}

// rows runs a trial of several rows without the original: what the original is
// off by itself is known from one row.
func (c *comparison) rows(ctx context.Context, t trial, one trialErrors) error {
	errs, err := c.errors(ctx, t, nil)
	var stopped *notRun
	if errors.As(err, &stopped) && stopped.which == c.double {
		return nil // it has no meaning for several rows
	}
	if err != nil {
		return err
	}
	for i := range errs {
		errs[i].lend(one[i])
	}
	return c.judge(t, errs)
}

// errors runs a trial with as many draws as it needs; original may be nil.
func (c *comparison) errors(ctx context.Context, t trial, original *loaded) (errs trialErrors, _ error) {
	s := c.site
	names := map[*loaded]string{c.original: "the site", c.double: "the site in float64", c.op: "the op", c.plain: "the site node by node"}
	draws := t.draws(c.lift.attention)
	for n := 0; n < draws || t.counts == nil && n < min(4*draws, mostDraws) && errs[0].count < enoughElements; n++ {
		feeds, mask := c.lifter.trialFeeds(c.rng, s, c.lift, t)
		var results [4]map[string]engine.Tensor
		for i, run := range []*loaded{original, c.double, c.op, c.plain} {
			if run == nil {
				continue
			}
			var err error
			if results[i], err = run.run(ctx, t.pt, run.cast(feeds)); err != nil {
				refusal := refuse(s.softmax, "%s does not run with %v: %v", names[run], t.pt, err)
				if errors.Is(err, engine.ErrTimeout) || errors.Is(err, engine.ErrDied) || ctx.Err() != nil {
					return errs, refusal
				}
				return errs, &notRun{run, err, refusal}
			}
		}
		for i, name := range s.results() {
			kind, err := c.rowKinds(ctx, i, t, feeds, mask)
			if err != nil {
				return errs, refuse(s.softmax, "%v", err)
			}
			counts := func(j int64) bool { return kind(j) == compared }
			if i == 0 {
				padded := func(j int64) bool { return kind(j) == paddedWithoutKeys }
				if errs[paddedOutput].add(results[0][name], results[1][name], results[2][name], padded) != nil {
					c.proof.PaddedDiffer = true // a number of one is none in another
				}
			}
			if err := errs[i].add(results[0][name], results[1][name], results[2][name], counts); err != nil {
				return errs, refuse(s.softmax, "%s with %v: %v", resultNames[i], t.pt, err)
			}
			switch {
			case i == presentKey && c.precision != rope.Float16:
				c.plainRotation(&errs[i], t, feeds, results[1][name])
			case c.plain != nil:
				errs[i].addPlain(results[3][name], results[1][name], counts)
			}
		}
	}
	return errs, nil
}

// judge applies the rule to a trial and notes its errors.
func (c *comparison) judge(t trial, errs trialErrors) error {
	for i := range c.site.results() {
		if err := errs[i].judge(apriori(i, c.lift, t, c.precision.Epsilon()), c.precision.Epsilon()); err != nil {
			return refuse(c.site.softmax, "%s with %v: %v%s", resultNames[i], t.pt, err, c.hint(i))
		}
		group := c.groups[t.magnitude]
		group[i].merge(errs[i])
		c.groups[t.magnitude] = group
		c.proof.MaxError = math.Max(c.proof.MaxError, errs[i].op)
		c.proof.OriginalError = math.Max(c.proof.OriginalError, errs[i].original)
	}
	if errs[paddedOutput].judge(math.Inf(1), c.precision.Epsilon()) != nil {
		c.proof.PaddedDiffer = true
	}
	group := c.groups[t.magnitude]
	group[paddedOutput].merge(errs[paddedOutput])
	c.groups[t.magnitude] = group
	return nil
}

// hint says what is unusual about the queries that a result was made for.
func (c *comparison) hint(result int) string {
	if result == 0 && c.unseeing {
		return "; its mask hides all keys from some tokens that are not padding, which the op answers with zeros"
	}
	return ""
}

// trialErrors holds the errors of output, present key and present value and,
// apart from the output's, those of its rows that are paddedWithoutKeys.
type trialErrors [4]resultErrors

const paddedOutput = 3 // among them

// resultErrors holds the errors of one result against float64: the largest,
// and the sums of their squares.
type resultErrors struct {
	original, op               float64
	originalSquares, opSquares float64
	plain, plainSquares        float64 // of a plain implementation, where one was looked at
	largest                    float64 // element of the result
	count                      float64
}

// add compares one result. Where the original did not run, its own error counts
// as none.
func (e *resultErrors) add(original, double, op engine.Tensor, counts func(i int64) bool) error {
	if original.Dims == nil {
		original = double
	}
	for _, t := range []engine.Tensor{original, op} {
		if !slices.Equal(t.Dims, double.Dims) {
			return fmt.Errorf("its shape is %v, %v was expected", t.Dims, double.Dims)
		}
	}
	x, y, z := original.Values(), double.Values(), op.Values()
	for i := range y {
		if !counts(int64(i)) {
			continue
		}
		if math.IsNaN(x[i]) || math.IsNaN(y[i]) || math.IsNaN(z[i]) {
			return fmt.Errorf("element %d is %g in the original, %g in float64 and %g in the op", i, x[i], y[i], z[i])
		}
		e.original = math.Max(e.original, math.Abs(x[i]-y[i]))
		e.op = math.Max(e.op, math.Abs(z[i]-y[i]))
		e.originalSquares += (x[i] - y[i]) * (x[i] - y[i])
		e.opSquares += (z[i] - y[i]) * (z[i] - y[i])
		e.largest = math.Max(e.largest, math.Abs(y[i]))
		e.count++
	}
	return nil
}

// lend gives e, which has no errors of an original, those of another trial.
func (e *resultErrors) lend(from resultErrors) {
	e.original = from.original
	if from.count > 0 {
		e.originalSquares = from.originalSquares * e.count / from.count
	}
}

func (e *resultErrors) merge(other resultErrors) {
	e.original = math.Max(e.original, other.original)
	e.op = math.Max(e.op, other.op)
	e.plain = math.Max(e.plain, other.plain)
	e.largest = math.Max(e.largest, other.largest)
}

// judge applies the rule to one trial: the op is off by at most twice what the
// original is off by itself, or a plain implementation, as root mean square
// (which hardly varies from draw to draw), and the original by no more than
// float32 explains. A quarter
// of a unit in the last place of the largest element is never held against the op.
func (e resultErrors) judge(limit, epsilon float64) error {
	if e.original > limit {
		return fmt.Errorf("the original itself is off by %.3g from float64, more than the %.3g that its arithmetic explains", e.original, limit)
	}
	if e.count == 0 {
		return nil
	}
	rms := func(squares float64) float64 { return math.Sqrt(squares / e.count) }
	if allowed := max(2*rms(e.originalSquares), 2*rms(e.plainSquares), e.largest*epsilon/4); !(rms(e.opSquares) <= allowed) {
		return fmt.Errorf("the op is off by %.3g (root mean square) from the original in float64; at most %.3g, twice the error of the original or of a plain implementation, was expected",
			rms(e.opSquares), allowed)
	}
	return nil
}

// judgeLargest applies the rule to the largest error of several trials, so
// that one wrong element among many is seen. Where the original is exact or nearly
// so, twice the rounding of the largest element is still allowed: half a unit in
// the last place, which is what any implementation rounds its result by.
func (e resultErrors) judgeLargest(epsilon float64) error {
	if allowed := max(2*e.original, 2*e.plain, e.largest*epsilon); !(e.op <= allowed) {
		return fmt.Errorf("the op is off by %.3g from the original in float64; at most %.3g, twice the error of the original or of a plain implementation, was expected", e.op, allowed)
	}
	return nil
}
