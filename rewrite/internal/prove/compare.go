package prove

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// comparison runs three things on the same inputs: the original site, its definition in
// float64, and the op that is to replace it. The definition is the site with its fused ops
// expanded into primitive nodes.
type comparison struct {
	evaluator            *eval.Evaluator
	site                 *site.Sized
	measured             *measure.Measured
	original, double, op *eval.Loaded
	plain                *eval.Loaded      // the definition with every node's result rounded, as a plain implementation does; nil where the original is one
	magnified            *eval.Loaded      // the op with frequencies that are off by more than rounding, see finer.go; nil for most
	byReach              *byReach          // the op with the frequencies that the graph computes in a call; nil where they are known before
	computed             *positions.Reader // the positions that the graph computes itself; nil for others
	at                   []float64         // those of the call that is looked at, [batch·length]; nil for others
	bias                 *score.Scorer     // computes the model's own bias; nil without
	rng                  *rand.Rand
	proof                *Proof
	precision            rope.Precision          // the least precise type of the original
	groups               map[float64]trialErrors // by the magnitude of the hidden states
	ran                  []trial                 // the trials that the original ran, as it ran them
	tried                score.Cases             // which queries without keys the trials had
}

// Compare tests nodes, with their constants, against the site: they must compute what
// Measured says of it. Tests give it nodes that are wrong on purpose.
func Compare(ctx context.Context, ev *eval.Evaluator, s *site.Sized, measured *measure.Measured, nodes []*onnx.Node, constants []*onnx.Tensor) (*Proof, error) {
	piece, err := site.ExtractSite(ev.Graph.Source, s)
	if err == nil && piece.Precision() == rope.BFloat16 {
		// What a fused op rounds inside itself cannot be emulated. The nodes of its
		// definition round as a plain implementation does.
		piece, err = site.ExtractSite(ev.Graph.Definition, s)
	}
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the original cannot be evaluated by itself: %v", err)
	}
	original, err := ev.Load(ctx, piece)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the original does not load: %v", err)
	}
	defer original.Session.Close()
	definition, err := site.ExtractSite(ev.Graph.Definition, s)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the original in standard operators cannot be evaluated by itself: %v", err)
	}
	inDouble := definition.Double()
	if measured.Rebuilt() {
		inDouble = definition.DoubleAngles()
	}
	doubleSession, err := ev.Session(ctx, inDouble, definition.Outputs)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the original does not load in float64: %v", err)
	}
	defer doubleSession.Close()
	op, err := loadOp(ctx, ev, s, measured, nodes, constants)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the op that should replace it does not load: %v", err)
	}
	defer op.Session.Close()
	c := &comparison{
		evaluator: ev, site: s, measured: measured,
		original:  original,
		double:    &eval.Loaded{Session: doubleSession, Piece: definition, Table: ev.Table, Elem: onnx.Double},
		op:        op,
		rng:       rand.New(rand.NewPCG(7, 8)),
		proof:     &Proof{Exact: measured.Exact},
		precision: piece.Precision(),
		groups:    map[float64]trialErrors{},
	}
	if c.precision == rope.Float16 || c.precision == rope.Float32 && ev.Graph.Definition != ev.Graph.Source {
		// The original may be more exact than a plain implementation, see plain.go.
		m := definition.Model(onnx.Float)
		float16.Emulate(m, onnx.Float16)
		session, err := ev.Session(ctx, m, definition.Outputs)
		if err != nil {
			return nil, graph.Refuse(s.Softmax, "the original does not load node by node: %v", err)
		}
		defer session.Close()
		c.plain = &eval.Loaded{Session: session, Piece: definition, Table: ev.Table, Elem: onnx.Float}
	}
	if c.magnified, err = loadMagnified(ctx, ev, s, measured); err != nil {
		return nil, graph.Refuse(s.Softmax, "the op with other frequencies does not load: %v", err)
	}
	if c.magnified != nil {
		defer c.magnified.Session.Close()
	}
	if c.byReach, err = newByReach(ctx, ev, s, measured); err != nil {
		return nil, graph.Refuse(s.Softmax, "the frequencies that it computes in each call cannot be compared: %v", err)
	}
	if c.byReach != nil {
		defer c.byReach.Close()
	}
	done, err := c.openPositions(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if measured.Attention.Mask.Bias {
		loaded, refusal := ev.Open(ctx, s.Softmax, "the mask", []string{s.SoftmaxInput()}, s.ScoresFrom())
		if refusal != nil {
			return nil, refusal
		}
		defer loaded.Session.Close()
		c.bias = &score.Scorer{Loaded: loaded, In: s.Scores(), Out: s.SoftmaxInput(), Fed: measured.Layouts.Scores, Read: measured.Layouts.Softmax, Extra: measured.Layouts.Sinks}
	}
	for _, t := range trials(measured) {
		if err := c.trial(ctx, t); err != nil {
			return nil, err
		}
	}
	if err := c.judgeGroups(ctx); err != nil {
		return nil, err
	}
	if err := c.untried(); err != nil {
		return nil, err
	}
	if c.byReach != nil {
		if err := c.byReach.errs.Judge(); err != nil {
			return nil, graph.Refuse(s.Softmax, "its frequencies do not follow dynamic NTK: %v", err)
		}
		c.proof.OriginalFrequencyError, c.proof.FrequencyError = c.byReach.errs.Largest()
	}
	return c.proof, nil
}

// mostRounds is how often the trials are run where their largest errors may be luck.
const mostRounds = 8

// judgeGroups applies the rule for the largest errors to all trials of one magnitude
// together. A largest error is only known as well as it was sampled: a few queries between
// two keys have most of it, and which of two implementations meets the worst of them first
// is luck, which changes from processor to processor. Where the op is a little over the
// rule the trials are run again with other numbers. What the op was off by before stays.
func (c *comparison) judgeGroups(ctx context.Context) error {
	for round := 1; ; round++ {
		mayBeLuck, err := c.judgeLargest()
		if err == nil || !mayBeLuck || round == mostRounds {
			return err
		}
		for _, t := range c.ran {
			errs, err := c.errors(ctx, t, c.original)
			if err == nil {
				err = c.judge(t, errs)
			}
			if err != nil {
				return err
			}
		}
	}
}

// judgeLargest judges the groups as they are. mayBeLuck says of an error that more trials
// may take it away.
func (c *comparison) judgeLargest() (mayBeLuck bool, _ error) {
	for _, magnitude := range slices.Sorted(maps.Keys(c.groups)) {
		group := c.groups[magnitude]
		for _, i := range kindsOf(c.site) {
			if err := group[i].JudgeLargest(c.precision.Epsilon()); err != nil {
				return group[i].MayBeLuck(c.precision.Epsilon()), graph.Refuse(c.site.Softmax, "%s: %v%s", resultNames[i], err, c.hint(i))
			}
		}
		if group[paddedOutput].JudgeLargest(c.precision.Epsilon()) != nil {
			c.proof.PaddedDiffer = true
		}
	}
	return false, nil
}

// notRun says that ONNX Runtime does not run the original, the definition or the op with
// the inputs of a trial.
type notRun struct {
	which *eval.Loaded
	why   error
	*graph.Refusal
}

func (n *notRun) Unwrap() error { return n.Refusal }

// Ran reports whether a site was refused by what it computes, and not because something did not run.
func Ran(refusal error) bool { return !errors.As(refusal, new(*notRun)) }

// trial runs and judges one trial. Some models run one row at a time only, or only
// positions that are below the number of tokens, or only so many tokens in a call. A trial that such a model does not run
// is changed until it does, so that every kind of input is tried: prefill, decode, each
// padding.
func (c *comparison) trial(ctx context.Context, t trial) error {
	errs, err := c.errors(ctx, t, c.original)
	notRunning := func() bool {
		var stopped *notRun
		if !errors.As(err, &stopped) || stopped.which != c.original || t.lengths != nil {
			return false
		}
		c.proof.Skipped++
		c.proof.SkippedWhy = plainly(stopped.why)
		return true
	}
	asked, skipped := t, c.proof.Skipped
	if t.pt.B > 1 && c.measured.Static.B == 0 && notRunning() {
		several := t
		t.pt.B = 1
		if errs, err = c.errors(ctx, t, c.original); err == nil {
			err = c.severalRows(ctx, several, errs)
		}
	}
	if t.positions < 0 && notRunning() {
		t.positions = t.pt.P
		errs, err = c.errors(ctx, t, c.original)
	}
	if notRunning() {
		c.proof.Skipped = skipped
		short, ok, failed := c.shorter(ctx, asked)
		if failed != nil {
			return failed
		}
		if ok {
			t, c.proof.LongestCall = short, max(c.proof.LongestCall, short.pt.L)
			errs, err = c.errors(ctx, t, c.original)
		}
	}
	if err != nil {
		return err
	}
	c.proof.Cases++
	c.ran = append(c.ran, t)
	return c.judge(t, errs)
}

// severalRows runs a trial of several rows without the original, which runs one row only.
// one is the errors of the same trial with one row: the original's own errors are taken
// from it.
func (c *comparison) severalRows(ctx context.Context, t trial, one trialErrors) error {
	errs, err := c.errors(ctx, t, nil)
	var stopped *notRun
	if errors.As(err, &stopped) && stopped.which == c.double {
		return nil // the site is not defined for several rows
	}
	if err != nil {
		return err
	}
	for i := range errs {
		errs[i].takeOriginal(one[i])
	}
	return c.judge(t, errs)
}

// errors runs a trial with as many draws of random numbers as it needs, and returns the
// errors of the results. original may be nil.
func (c *comparison) errors(ctx context.Context, t trial, original *eval.Loaded) (errs trialErrors, _ error) {
	s := c.site
	names := map[*eval.Loaded]string{c.original: "the original", c.double: "the original in float64", c.plain: "the original node by node", c.magnified: "the op with other frequencies"}
	draws, kinds := t.draws(c.measured.Attention), kindsOf(s)
	for n := 0; n < draws || t.lengths == nil && n < min(4*draws, mostDraws) && errs[kinds[0]].Count < enoughElements; n++ {
		feeds, mask := trialFeeds(c.evaluator, c.rng, s, c.measured, t)
		if err := c.place(ctx, t, feeds); err != nil {
			return errs, err
		}
		op, err := c.inCall(ctx, t, feeds)
		if err != nil {
			return errs, graph.Refuse(s.Softmax, "with %v: %v", t.pt, err)
		}
		names[op] = "the op"
		var results [5]map[string]engine.Tensor
		pt := sizes(c.evaluator, t)
		var runs []eval.Run
		var at []int // in results
		for i, l := range []*eval.Loaded{original, c.double, op, c.plain, c.magnified} {
			if l != nil {
				runs, at = append(runs, eval.Run{Loaded: l, Pt: pt, Feeds: cast(l, feeds)}), append(at, i)
			}
		}
		got, err := eval.RunAll(ctx, runs)
		if err != nil {
			run := runs[len(got)].Loaded
			refusal := graph.Refuse(s.Softmax, "%s does not run with %v: %s", names[run], t.pt, plainly(err))
			if errors.Is(err, engine.ErrTimeout) || errors.Is(err, engine.ErrDied) || ctx.Err() != nil {
				return errs, refusal
			}
			return errs, &notRun{run, err, refusal}
		}
		for i, k := range at {
			results[k] = got[i]
		}
		for at, name := range s.Results() {
			i := kinds[at]
			kind, err := c.rowKinds(ctx, i, t, feeds, mask)
			if err != nil {
				return errs, graph.Refuse(s.Softmax, "%v", err)
			}
			counts := func(j int64) bool { return kind(j) == Compared }
			values, err := valuesOf(results[0][name], results[1][name], results[2][name])
			if err == nil && i == output {
				padded := func(j int64) bool { return kind(j) == PaddedWithoutKeys }
				if errs[paddedOutput].add(values, padded) != nil {
					c.proof.PaddedDiffer = true // NaN in one of them
				}
			}
			if err == nil {
				err = errs[i].add(values, counts)
			}
			if err != nil {
				return errs, graph.Refuse(s.Softmax, "%s with %v: %v", resultNames[i], t.pt, err)
			}
			switch {
			case c.precision != rope.Float16 && (i == rotatedQuery || i == rotatedKey):
				c.plainlyRotated(&errs[i], i, t, feeds, results[1][name])
			case i == presentKey && c.precision != rope.Float16:
				c.plainRotation(&errs[i], t, feeds, results[1][name])
			case c.plain != nil:
				errs[i].addPlain(results[3][name], results[1][name], counts)
			}
			if c.magnified != nil {
				errs[i].addRounding(results[4][name], results[2][name], counts)
			}
		}
	}
	return errs, nil
}

// judge applies the rule for one trial and adds its errors to its group and to the proof.
func (c *comparison) judge(t trial, errs trialErrors) error {
	for _, i := range kindsOf(c.site) {
		if t.rough {
			if limit := apriori(i, c.measured, t, c.precision.Epsilon()); !(max(errs[i].Op, errs[i].Original) <= limit) {
				return graph.Refuse(c.site.Softmax, "%s with %v and large scores: the op is off by %.3g from the original in float64, the original by %.3g; rounding explains %.3g%s",
					resultNames[i], t.pt, errs[i].Op, errs[i].Original, limit, c.hint(i))
			}
			continue
		}
		if err := errs[i].Judge(apriori(i, c.measured, t, c.precision.Epsilon()), c.precision.Epsilon()); err != nil {
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

// hint says, for the text of a refusal, what is unusual about the queries of a result.
func (c *comparison) hint(result int) string {
	if result == output && c.tried.RealWithoutKeys {
		return "; its mask hides all keys from some tokens that are not padding, and the op gives zeros for these"
	}
	return ""
}
