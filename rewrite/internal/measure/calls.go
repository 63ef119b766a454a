package measure

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// rotatorOf returns what evaluates a loaded branch from its boundaries to out. from and to are the
// layouts before and after.
func rotatorOf(loaded *eval.Loaded, b site.Branch, out string, from, to dim.Layout) *rotation.Rotator {
	return &rotation.Rotator{Loaded: loaded, Cuts: b.Boundaries(), Out: out, In: from, To: to,
		Precision: loaded.Piece.Precision(), Angles: loaded.Piece.AnglePrecision()}
}

// opened is a branch as it is evaluated.
type opened struct {
	whole  *eval.Loaded     // from its boundaries to its end
	fed    *eval.Loaded     // what vectors are fed to: the same, or with rows of tables beside them
	tables *rotation.Tables // these, where positions are indices; nil for others
	places int64            // the static length of a model that rotates tokens by their index; 0 for others

	position *rotation.Position // what is fed as positions where the graph computes them; nil for others
}

// openBranch opens a branch from its boundaries to out. computed is the positions that the graph
// computes for it, nil for none. The error is a refusal, which names the node at; what is for its text.
func openBranch(ctx context.Context, ev *eval.Evaluator, b site.Branch, at *onnx.Node, what, out string, computed *positions.Computed) (*opened, error) {
	what = "the rotation of its " + what
	if computed != nil {
		return openComputed(ctx, ev, b, at, what, out, computed)
	}
	loaded, refusal := ev.Open(ctx, at, what, []string{out}, b.MeasuredFrom())
	if refusal != nil {
		return nil, refusal
	}
	o := &opened{whole: loaded, fed: loaded}
	switch {
	case ev.Table.Past || len(loaded.Piece.Inputs) > 0:
	case ev.Table.Static.L > 0:
		o.places = ev.Table.Static.L
	default:
		var err error
		if o.tables, o.fed, err = rotation.ByPlace(ctx, ev, at, what, out, b.MeasuredFrom()); err != nil {
			loaded.Session.Close()
			return nil, err
		}
	}
	return o, nil
}

func (o *opened) close() {
	o.whole.Session.Close()
	if o.tables != nil {
		o.fed.Session.Close()
		o.tables.Close()
	}
}

// ofInput is a graph input as what is fed as positions.
func ofInput(ev *eval.Evaluator, v *onnx.ValueInfo) *rotation.Position {
	return &rotation.Position{Name: v.Name, Type: v.Type, Dims: ev.Table.Inputs[v.Name]}
}

// QueryCalls opens the rotation of a site's queries by the largest position of a call, for a
// measured site whose frequencies follow it. done closes it.
func QueryCalls(ctx context.Context, ev *eval.Evaluator, s *site.Sized, m *Measured) (calls *rotation.Calls, done func(), err error) {
	o, err := openBranch(ctx, ev, s.Query, s.ScoresMatMul, "query", s.Query.Operand, nil)
	if err != nil {
		return nil, nil, err
	}
	r := rotatorOf(o.whole, s.Query, s.Query.Operand, m.Layouts.Query, m.Layouts.QueryOperand)
	r.Loaded, r.Tables = o.fed, o.tables
	if m.Position != nil {
		r.Position = ofInput(ev, m.Position)
	}
	if calls, err = r.Calls(ctx); err != nil {
		o.close()
		return nil, nil, graph.Refuse(s.ScoresMatMul, "%v", err)
	}
	return calls, o.close, nil
}
