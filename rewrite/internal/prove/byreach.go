package prove

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A graph that computes its frequencies anew in each call rounds them, and the op rounds its own.
// At far positions the difference is larger than everything else that a comparison should see. So
// it is proven in three steps, of which none allows for another's rounding:
//
//   - in calls of every length that is tried, the op with the frequencies that the graph has there
//     computes what the site does;
//   - these are off from the formula in float64 by at most twice what a plain implementation is
//     off by, and so are the op's own (rotation.CallErrors);
//   - the op as it will be in the model gives the same bits as the op with the formula's.

// byReach is the op with the frequencies of calls of one length.
type byReach struct {
	calls   *rotation.Calls
	trained int64
	load    func(frequencies []float64) (*eval.Loaded, error)
	formula rope.Encoding
	known   map[int64]calledOp
	errs    *rotation.CallErrors
	close   func()
}

// calledOp is the op with the frequencies that the graph has in a call, and with the formula's.
type calledOp struct{ given, formula *eval.Loaded }

// newByReach returns that of a site whose frequencies follow dynamic NTK, nil for others.
func newByReach(ctx context.Context, ev *eval.Evaluator, s *site.Sized, measured *measure.Measured) (*byReach, error) {
	a := measured.Attention
	dependent := a.Encoding.LengthDependent
	if dependent.NTK == 0 {
		return nil, nil
	}
	binding, err := lower.Bind(s, measured)
	if err != nil {
		return nil, err
	}
	errs, err := rotation.NewCallErrors(a.Encoding)
	if err != nil {
		return nil, err
	}
	calls, done, err := measure.QueryCalls(ctx, ev, s, measured)
	if err != nil {
		return nil, err
	}
	load := func(frequencies []float64) (*eval.Loaded, error) {
		given := a
		given.Encoding.LengthDependent = rope.LengthDependent{Trained: dependent.Trained, Long: frequencies}
		nodes, constants, err := lower.Nodes(binding, given, lower.ExtraInputs{})
		if err != nil {
			return nil, err
		}
		return loadOp(ctx, ev, s, measured, nodes, constants)
	}
	return &byReach{calls: calls, trained: dependent.Trained, load: load, formula: a.Encoding, known: map[int64]calledOp{}, errs: errs, close: done}, nil
}

// op returns the op for the calls of a length, which is loaded once.
func (b *byReach) op(ctx context.Context, length int64) (out calledOp, err error) {
	if out, ok := b.known[length]; ok {
		return out, nil
	}
	frequencies, err := b.calls.Frequencies(ctx, length-1)
	if err != nil {
		return out, err
	}
	b.errs.Add(length, frequencies)
	if out.given, err = b.load(frequencies); err == nil {
		out.formula, err = b.load(b.formula.At(length).Frequencies)
	}
	b.known[length] = out
	return out, err
}

// Close releases what was loaded.
func (b *byReach) Close() {
	b.close()
	for _, op := range b.known {
		for _, l := range []*eval.Loaded{op.given, op.formula} {
			if l != nil {
				l.Session.Close()
			}
		}
	}
}

// inCall returns the op that is to be compared with the site in a call: own, but with the
// frequencies that the graph has there where it computes them anew.
func (c *comparison) inCall(ctx context.Context, t trial, feeds map[string]engine.Tensor) (*eval.Loaded, error) {
	if c.byReach == nil {
		return c.op, nil
	}
	length := t.tokens()
	if p := c.measured.Position; p != nil {
		length = int64(slices.Max(feeds[p.Name].Values())) + 1
	}
	if length <= c.byReach.trained {
		return c.op, nil
	}
	op, err := c.byReach.op(ctx, length)
	if err != nil {
		return nil, fmt.Errorf("the op with the frequencies of a call that reaches %d tokens: %w", length, err)
	}
	run := func(l *eval.Loaded) (map[string]engine.Tensor, error) {
		return l.Run(ctx, sizes(c.evaluator, t), cast(l, feeds))
	}
	own, err := run(c.op)
	if err != nil {
		return nil, err
	}
	formula, err := run(op.formula)
	if err != nil {
		return nil, err
	}
	for i, name := range c.site.Results() {
		if bytes.Equal(own[name].Data, formula[name].Data) {
			continue
		}
		var off ResultErrors
		if err := off.Add(formula[name], formula[name], own[name], func(int64) bool { return true }); err != nil {
			return nil, fmt.Errorf("%s: %w", resultNames[kindsOf(c.site)[i]], err)
		}
		return nil, fmt.Errorf("%s: the op is off by %.3g from the op that is given the frequencies of the formula; expected the same bits", resultNames[kindsOf(c.site)[i]], off.Op)
	}
	return op.given, nil
}
