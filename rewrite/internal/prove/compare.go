package prove

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
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// comparison runs the original site, its definition in float64 and the op that
// should replace it.
type comparison struct {
	lifter               *eval.Evaluator
	site                 *site.Sized
	lift                 *measure.Measured
	original, double, op *eval.Loaded
	plain                *eval.Loaded  // the definition node by node, as a plain implementation does it; nil where the original is that
	bias                 *score.Scorer // makes the model's own bias; nil without
	rng                  *rand.Rand
	proof                *Proof
	precision            rope.Precision          // the original's weakest type
	groups               map[float64]trialErrors // by the size of the hidden states
	unseeing             bool                    // the query of a token that is no padding saw no key
}

// Compare proves lowered nodes against the site.
func Compare(ctx context.Context, l *eval.Evaluator, s *site.Sized, lift *measure.Measured, nodes []*onnx.Node, constants []*onnx.Tensor) (*Proof, error) {
	piece, err := site.ExtractSite(l.Graph.Source, s)
	if err == nil && piece.Precision() == rope.BFloat16 {
		// What a fused op rounds on its way nobody can emulate; its definition's
		// nodes round as a plain implementation does.
		piece, err = site.ExtractSite(l.Graph.Definition, s)
	}
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the site cannot be evaluated by itself: %v", err)
	}
	original, err := l.Load(ctx, piece)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the site does not load: %v", err)
	}
	defer original.Session.Close()
	definition, err := site.ExtractSite(l.Graph.Definition, s)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the site's definition cannot be evaluated by itself: %v", err)
	}
	doubleSession, err := l.Session(ctx, definition.Double(), definition.Outputs)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the site does not load in float64: %v", err)
	}
	defer doubleSession.Close()
	op, err := loadOp(ctx, l, s, lift, nodes, constants)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the op that should replace it does not load: %v", err)
	}
	defer op.Session.Close()
	c := &comparison{
		lifter: l, site: s, lift: lift,
		original:  original,
		double:    &eval.Loaded{Session: doubleSession, Piece: definition, Table: l.Table, Elem: onnx.Double},
		op:        op,
		rng:       rand.New(rand.NewPCG(7, 8)),
		proof:     &Proof{},
		precision: piece.Precision(),
		groups:    map[float64]trialErrors{},
	}
	if c.precision == rope.Float16 || c.precision == rope.Float32 && l.Graph.Definition != l.Graph.Source {
		// A fused op may be more exact than a plain implementation.
		m := definition.Model(onnx.Float)
		narrow.Emulate(m, onnx.Float16)
		session, err := l.Session(ctx, m, definition.Outputs)
		if err != nil {
			return nil, graph.Refuse(s.Softmax, "the site does not load node by node: %v", err)
		}
		defer session.Close()
		c.plain = &eval.Loaded{Session: session, Piece: definition, Table: l.Table, Elem: onnx.Float}
	}
	if lift.Attention.Mask.Bias {
		loaded, refusal := l.Open(ctx, s.Softmax, "the mask", []string{s.SoftmaxInput()}, []string{s.Scores()})
		if refusal != nil {
			return nil, refusal
		}
		defer loaded.Session.Close()
		c.bias = &score.Scorer{Loaded: loaded, In: s.Scores(), Out: s.SoftmaxInput(), Heads: lift.Layouts.Query.Heads, Extra: lift.Layouts.Sinks}
	}
	for _, t := range trials(lift) {
		if err := c.trial(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, group := range c.groups {
		for i := range s.Results() {
			if err := group[i].JudgeLargest(c.precision.Epsilon()); err != nil {
				return nil, graph.Refuse(s.Softmax, "%s: %v%s", resultNames[i], err, c.hint(i))
			}
		}
		if group[paddedOutput].JudgeLargest(c.precision.Epsilon()) != nil {
			c.proof.PaddedDiffer = true
		}
	}
	return c.proof, nil
}

// notRun says that ONNX Runtime does not run one of the three.
type notRun struct {
	which *eval.Loaded
	why   error
	*graph.Refusal
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
		if !errors.As(err, &stopped) || stopped.which != c.original || t.lengths != nil {
			return false
		}
		c.proof.Skipped++
		c.proof.SkippedWhy = stopped.why.Error()
		return true
	}
	if t.pt.B > 1 && c.lift.Static.B == 0 && notRunning() {
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
func (c *comparison) errors(ctx context.Context, t trial, original *eval.Loaded) (errs trialErrors, _ error) {
	s := c.site
	names := map[*eval.Loaded]string{c.original: "the site", c.double: "the site in float64", c.op: "the op", c.plain: "the site node by node"}
	draws := t.draws(c.lift.Attention)
	for n := 0; n < draws || t.lengths == nil && n < min(4*draws, mostDraws) && errs[0].Count < enoughElements; n++ {
		feeds, mask := trialFeeds(c.lifter, c.rng, s, c.lift, t)
		var results [4]map[string]engine.Tensor
		for i, run := range []*eval.Loaded{original, c.double, c.op, c.plain} {
			if run == nil {
				continue
			}
			var err error
			if results[i], err = run.Run(ctx, t.pt, cast(run, feeds)); err != nil {
				refusal := graph.Refuse(s.Softmax, "%s does not run with %v: %v", names[run], t.pt, err)
				if errors.Is(err, engine.ErrTimeout) || errors.Is(err, engine.ErrDied) || ctx.Err() != nil {
					return errs, refusal
				}
				return errs, &notRun{run, err, refusal}
			}
		}
		for i, name := range s.Results() {
			kind, err := c.rowKinds(ctx, i, t, feeds, mask)
			if err != nil {
				return errs, graph.Refuse(s.Softmax, "%v", err)
			}
			counts := func(j int64) bool { return kind(j) == Compared }
			if i == 0 {
				padded := func(j int64) bool { return kind(j) == PaddedWithoutKeys }
				if errs[paddedOutput].Add(results[0][name], results[1][name], results[2][name], padded) != nil {
					c.proof.PaddedDiffer = true // a number of one is none in another
				}
			}
			if err := errs[i].Add(results[0][name], results[1][name], results[2][name], counts); err != nil {
				return errs, graph.Refuse(s.Softmax, "%s with %v: %v", resultNames[i], t.pt, err)
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
	for i := range c.site.Results() {
		if err := errs[i].Judge(apriori(i, c.lift, t, c.precision.Epsilon()), c.precision.Epsilon()); err != nil {
			return graph.Refuse(c.site.Softmax, "%s with %v: %v%s", resultNames[i], t.pt, err, c.hint(i))
		}
		group := c.groups[t.magnitude]
		group[i].merge(errs[i])
		c.groups[t.magnitude] = group
		c.proof.MaxError = math.Max(c.proof.MaxError, errs[i].Op)
		c.proof.OriginalError = math.Max(c.proof.OriginalError, errs[i].Original)
	}
	if errs[paddedOutput].Judge(math.Inf(1), c.precision.Epsilon()) != nil {
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
type trialErrors [4]ResultErrors

const paddedOutput = 3 // among them

// ResultErrors holds the errors of one result against float64: the largest,
// and the sums of their squares.
type ResultErrors struct {
	Original, Op               float64
	originalSquares, opSquares float64
	plain, plainSquares        float64 // of a plain implementation, where one was looked at
	Largest                    float64 // element of the result
	Count                      float64
}

// Add compares one result. Where the original did not run, its own error counts
// as none.
func (e *ResultErrors) Add(original, double, op engine.Tensor, counts func(i int64) bool) error {
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
		e.Original = math.Max(e.Original, math.Abs(x[i]-y[i]))
		e.Op = math.Max(e.Op, math.Abs(z[i]-y[i]))
		e.originalSquares += (x[i] - y[i]) * (x[i] - y[i])
		e.opSquares += (z[i] - y[i]) * (z[i] - y[i])
		e.Largest = math.Max(e.Largest, math.Abs(y[i]))
		e.Count++
	}
	return nil
}

// lend gives e, which has no errors of an original, those of another trial.
func (e *ResultErrors) lend(from ResultErrors) {
	e.Original = from.Original
	if from.Count > 0 {
		e.originalSquares = from.originalSquares * e.Count / from.Count
	}
}

func (e *ResultErrors) merge(other ResultErrors) {
	e.Original = math.Max(e.Original, other.Original)
	e.Op = math.Max(e.Op, other.Op)
	e.plain = math.Max(e.plain, other.plain)
	e.Largest = math.Max(e.Largest, other.Largest)
}

// Judge applies the rule to one trial: the op is off by at most twice what the
// original is off by itself, or a plain implementation, as root mean square
// (which hardly varies from draw to draw), and the original by no more than
// float32 explains. A quarter
// of a unit in the last place of the largest element is never held against the op.
func (e ResultErrors) Judge(limit, epsilon float64) error {
	if e.Original > limit {
		return fmt.Errorf("the original itself is off by %.3g from float64, more than the %.3g that its arithmetic explains", e.Original, limit)
	}
	if e.Count == 0 {
		return nil
	}
	rms := func(squares float64) float64 { return math.Sqrt(squares / e.Count) }
	if allowed := max(2*rms(e.originalSquares), 2*rms(e.plainSquares), e.Largest*epsilon/4); !(rms(e.opSquares) <= allowed) {
		return fmt.Errorf("the op is off by %.3g (root mean square) from the original in float64; at most %.3g, twice the error of the original or of a plain implementation, was expected",
			rms(e.opSquares), allowed)
	}
	return nil
}

// JudgeLargest applies the rule to the largest error of several trials, so
// that one wrong element among many is seen. Where the original is exact or nearly
// so, twice the rounding of the largest element is still allowed: half a unit in
// the last place, which is what any implementation rounds its result by.
func (e ResultErrors) JudgeLargest(epsilon float64) error {
	if allowed := max(2*e.Original, 2*e.plain, e.Largest*epsilon); !(e.Op <= allowed) {
		return fmt.Errorf("the op is off by %.3g from the original in float64; at most %.3g, twice the error of the original or of a plain implementation, was expected", e.Op, allowed)
	}
	return nil
}
