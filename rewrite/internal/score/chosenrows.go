package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// ChooseRows returns a Scorer that evaluates chosen rows only, where s evaluates all. It
// checks that these rows are the same as those of s. The session of its piece must be
// closed.
func (s *Scorer) ChooseRows(ctx context.Context, e *eval.Evaluator) (*Scorer, error) {
	p, err := e.ByRows(ctx, s.Loaded.Piece, s.In, s.Fed.RowAxis(), s.Read.RowAxis())
	if err != nil {
		return nil, err
	}
	chosen, err := e.Load(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("it does not load row by row: %w", err)
	}
	rows := *s
	rows.Loaded, rows.Out, rows.byRows, rows.all = chosen, p.Outputs[0], true, s.AllRows()
	if err := rows.sameAs(ctx, s); err != nil {
		chosen.Session.Close()
		return nil, err
	}
	return &rows, nil
}

// sameAs returns an error if the rows that s computes one by one are not those of all,
// which computes them together.
func (s *Scorer) sameAs(ctx context.Context, all *Scorer) error {
	rng := rand.New(rand.NewPCG(9, 10))
	most, err := bisect.Farthest(333, func(tokens int64) (int64, error) { // the graph may have tables for fewer
		_, err := all.unpadded(ctx, rng, dim.Point{B: 1, L: tokens})
		return tokens, err
	})
	if err != nil {
		return err
	}
	for _, pt := range []dim.Point{{B: 2, L: 9, P: 0}, {B: 1, L: 4, P: 8}, {B: 3, L: 1, P: 20}, {B: 1, L: 33, P: 300}} {
		pt.L = min(pt.L, most)
		pt.P = min(pt.P, most-pt.L)
		tokens := dim.Point{B: pt.B, L: pt.L + pt.P}
		mask := eval.Padding(rng, tokens, eval.PaddingKind(pt.L))
		given, err := all.given(rng, tokens, mask)
		if err != nil {
			return err
		}
		in, want, err := all.Rows(ctx, tokens, rng.NormFloat64, given)
		if err != nil {
			return err
		}
		var scores []float32 // those of the chosen rows
		for r, row := range in {
			if int64(r)%tokens.L >= pt.P {
				scores = append(scores, row...)
			}
		}
		_, got, err := s.Rows(ctx, pt, func() float64 { x := scores[0]; scores = scores[1:]; return float64(x) }, given)
		if err != nil {
			return err
		}
		for r, row := range want {
			if int64(r)%tokens.L < pt.P {
				continue
			}
			if !slices.Equal(row, got[0]) {
				return fmt.Errorf("row %d of %d does not come out the same by itself", int64(r)%tokens.L, tokens.L)
			}
			got = got[1:]
		}
	}
	return nil
}
