package measure

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Parts are what small calls are compared with.
type Parts struct {
	Fit        *score.Fit
	Query, Key *rotation.Matrix
}

// MeasureParts measures the scores and rotations of a site.
func MeasureParts(ctx context.Context, ev *eval.Evaluator, s *site.Sized) (p Parts, err error) {
	ly, err := s.Layouts(ev.Table)
	if err != nil {
		return p, err
	}
	fit, err := measureScores(ctx, ev, s, ly, nil)
	if err != nil {
		return p, err
	}
	p.Fit = fit.Fit
	if p.Query, _, err = branchRotation(ctx, ev, s.Query, s.ScoresMatMul, "query", s.Query.Operand, ly.Query, ly.QueryOperand, fit.padding); err != nil {
		return p, err
	}
	p.Key, _, err = branchRotation(ctx, ev, s.Key, s.ScoresMatMul, "key", s.Key.Cached(), ly.Key, ly.KeyCached, fit.padding)
	return p, err
}

// CompareSmallCalls compares a site with what was measured of another one, in small calls and by its formulas. The
// result says whether both are known for any number of tokens.
func CompareSmallCalls(ctx context.Context, ev *eval.Evaluator, s *site.Sized, p Parts) (anyLength bool, err error) {
	ly, err := s.Layouts(ev.Table)
	if err != nil {
		return false, err
	}
	loaded, refusal := ev.Open(ctx, s.Softmax, "the mask", []string{s.SoftmaxInput()}, s.ScoresFrom())
	if refusal != nil {
		return false, refusal
	}
	defer loaded.Session.Close()
	padding, others := paddingInput(ev, loaded.Piece.Inputs, eval.TotalOf(ev.Table), nil)
	sc := &score.Scorer{Loaded: loaded, Evaluator: ev, In: s.Scores(), Out: s.SoftmaxInput(), Fed: ly.Scores, Read: ly.Softmax, Others: others, Extra: ly.Sinks}
	if padding != nil {
		sc.Mask = padding.Name
	}
	if !ev.Table.Past {
		sc = sc.AllRows()
	}
	fit := *p.Fit
	exact, err := sc.Exact(ctx, &fit)
	if err != nil {
		return false, err
	}
	anyLength = exact.AnyLength
	for _, b := range []struct {
		branch site.Branch
		out    string
		m      *rotation.Matrix
	}{{s.Query, s.Query.Operand, p.Query}, {s.Key, s.Key.Cached(), p.Key}} {
		o, err := openBranch(ctx, ev, b.branch, s.ScoresMatMul, "branch", b.out, nil)
		if err != nil {
			return false, err
		}
		from, to := ly.Query, ly.QueryOperand
		if b.out == s.Key.Cached() {
			from, to = ly.Key, ly.KeyCached
		}
		m := *b.m
		input, components, err := positionInput(ev, s.ScoresMatMul, "branch", o.whole.Piece.Inputs)
		if err == nil {
			r := rotatorOf(o.whole, b.branch, b.out, from, to)
			if r.Components = components; input != nil {
				r.Position = ofInput(ev, input)
			}
			err = o.smallCalls(ctx, ev, &m, nil, r)
		}
		o.close()
		if err != nil {
			return false, err
		}
		anyLength = anyLength && m.AnyLength
	}
	return anyLength, nil
}
