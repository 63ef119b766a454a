package measure

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/control"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
)

// smallCalls compares the rotation of a branch with every call of few tokens, also in copies of the graph that have
// small numbers in the place of large ones (package control), and counts these calls in m.
func (o *opened) smallCalls(ctx context.Context, ev *eval.Evaluator, m *rotation.Matrix, rotator func(*eval.Loaded) *rotation.Rotator) error {
	l := m.Encoding.LengthDependent
	if o.places > 0 || len(m.Encoding.Frequencies) == 0 || l.NTK != 0 {
		return nil // all positions are compared in every call, or the frequencies are no list
	}
	calls, err := rotator(o.whole).SmallCalls(ctx, m, l.Trained)
	if m.Calls = calls; err != nil {
		return told(err)
	}
	part := control.Of(o.whole.Piece, "")
	end := func(number int64) bool { return number >= m.Limit && number <= m.Limit+2 }
	if !part.Fits(end) {
		return nil
	}
	for c := range part.Copies(end) {
		loaded, err := ev.Load(ctx, c.Piece)
		if err != nil {
			return told(control.NotRun{Why: err})
		}
		trained := c.Near(l.Trained)
		calls, err := rotator(loaded).SmallCalls(ctx, m, trained)
		loaded.Session.Close()
		if err != nil && !notRun(err) {
			return fmt.Errorf("it changes at %d: with %d there, %w", part.Runs[0][0], c.Of(part.Runs[0][0]), err)
		}
		if err != nil {
			return told(err)
		}
		m.Calls += calls
	}
	return nil
}

// told returns an error that says something of the graph, or ends everything. A call that is not evaluated says
// nothing here: what the graph cannot compute was found before.
func told(err error) error {
	if notRun(err) {
		return bisect.OnlyEnded(err)
	}
	return err
}

func notRun(err error) bool { return errors.As(err, new(control.NotRun)) }
