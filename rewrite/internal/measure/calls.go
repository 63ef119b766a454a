package measure

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// rotatorOf returns what evaluates a loaded branch from its boundaries to out. from and to are the
// layouts before and after.
func rotatorOf(loaded *eval.Loaded, b site.Branch, out string, from, to dim.Layout) *rotation.Rotator {
	return &rotation.Rotator{Loaded: loaded, Cuts: b.Boundaries(), Out: out, In: from, To: to,
		Precision: loaded.Piece.Precision(), Angles: loaded.Piece.AnglePrecision()}
}

// QueryCalls opens the rotation of a site's queries by the largest position of a call, for a
// measured site whose positions are a graph input. done closes it.
func QueryCalls(ctx context.Context, ev *eval.Evaluator, s *site.Sized, m *Measured) (calls *rotation.Calls, done func(), err error) {
	loaded, refusal := ev.Open(ctx, s.ScoresMatMul, "the rotation of its query", []string{s.Query.Operand}, s.Query.MeasuredFrom())
	if refusal != nil {
		return nil, nil, refusal
	}
	r := rotatorOf(loaded, s.Query, s.Query.Operand, m.Layouts.Query, m.Layouts.QueryOperand)
	r.Position = m.Position.Name
	if calls, err = r.Calls(ctx); err != nil {
		loaded.Session.Close()
		return nil, nil, graph.Refuse(s.ScoresMatMul, "%v", err)
	}
	return calls, func() { loaded.Session.Close() }, nil
}
