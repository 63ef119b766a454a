package measure

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/formula"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// smallCalls compares the rotation of a branch with every call of few tokens, counts these calls in m, and notes in it
// whether the graph computes a formula by which the rotation is the same in longer calls.
func (o *opened) smallCalls(ctx context.Context, ev *eval.Evaluator, m *rotation.Matrix, computed *positions.Computed, whole *rotation.Rotator) error {
	l := m.Encoding.LengthDependent
	if o.places == 0 && len(m.Encoding.Frequencies) > 0 && l.NTK == 0 { // or all positions are compared in every call, or frequencies are no list
		calls, err := whole.SmallCalls(ctx, m, l.Trained)
		if m.Calls = calls; err != nil {
			return told(err)
		}
	}
	if l.Trained > 0 {
		m.Unread = "its frequencies follow the length"
		return nil
	}
	return o.anyLength(ctx, ev, m, computed)
}

// anyLength reads the formula of a rotation.
func (o *opened) anyLength(ctx context.Context, ev *eval.Evaluator, m *rotation.Matrix, computed *positions.Computed) error {
	err := formulaOf(ctx, ev, o.whole.Piece, "", (*formula.Reader).Turns)
	if err == nil && computed != nil {
		var p *eval.Piece
		if p, err = eval.Extract(ev.Graph, []string{computed.Value}, nil); err == nil {
			mask := ""
			if computed.Mask != nil {
				mask = computed.Mask.Name
			}
			err = formulaOf(ctx, ev, p, mask, func(r *formula.Reader) error { return r.Counts(computed.Value) })
		}
	}
	if m.AnyLength = err == nil; err != nil {
		m.Unread = err.Error()
	}
	return bisect.OnlyEnded(err)
}

// formulaOf gives of the formulas of a piece.
func formulaOf(ctx context.Context, ev *eval.Evaluator, p *eval.Piece, padding string, of func(*formula.Reader) error) error {
	if !formula.Reads(ev.Table) {
		return formula.Unread{Why: "its sizes are others than those of a growing row"}
	}
	dims, err := ev.Dims(ctx, p)
	if err != nil {
		return err
	}
	return of(formula.NewReader(p, ev.Table, dims, "", padding))
}

// carried notes in e where rotated keys, values or probabilities may take another way in some call.
func carried(ev *eval.Evaluator, s *site.Sized, e *provenance.Exact) {
	for _, way := range []struct {
		what, to string
		from     []string
	}{
		{"keys", s.Key.Operand, append(s.Key.MeasuredFrom(), s.Key.Rotated(), s.Key.Past())},
		{"values", s.Value.Operand, append(s.Value.MeasuredFrom(), s.Value.Past())},
		{"probabilities", s.ValueMatMul.Inputs[0], s.Softmax.Outputs[:1]},
	} {
		if slices.Contains(way.from, way.to) {
			continue
		}
		p, err := eval.Extract(ev.Graph, []string{way.to}, slices.DeleteFunc(way.from, func(v string) bool { return v == "" }))
		if err == nil {
			err = formula.NewReader(p, ev.Table, nil, "", "").Turns()
		}
		if err != nil && e.AnyLength {
			e.AnyLength, e.Tokens, e.Why = false, dim.SmallWidth, way.what+": "+err.Error()
		}
	}
}

// told returns an error that says something of the graph, or ends everything. A call that is not evaluated says
// nothing here: what the graph cannot compute was found before.
func told(err error) error {
	if errors.As(err, new(eval.NotRun)) {
		return bisect.OnlyEnded(err)
	}
	return err
}

// turns adds to what is known of a mask what is known of the rotations of query and key.
func turns(e *provenance.Exact, query, key *rotation.Matrix) {
	e.Calls = query.Calls + key.Calls
	for _, m := range []*rotation.Matrix{query, key} {
		if !m.AnyLength && e.AnyLength {
			e.AnyLength, e.Tokens, e.Why = false, dim.SmallWidth, "positions: "+cmp.Or(m.Unread, "a condition chooses between two rotations")
		}
	}
}
