package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// ChooseRows makes s evaluate chosen rows only, and checks that these are the rows of
// whole, the piece that s has evaluated so far. It returns the piece that s evaluates
// from now on; its session must be closed. After an error s must not be used.
func ChooseRows(ctx context.Context, e *eval.Evaluator, whole *eval.Loaded, s *Scorer) (*eval.Loaded, error) {
	p, err := e.ByRows(ctx, whole.Piece, 2)
	if err != nil {
		return nil, err
	}
	chosen, err := e.Load(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("it does not load row by row: %w", err)
	}
	fail := func(err error) (*eval.Loaded, error) {
		chosen.Session.Close()
		return nil, err
	}
	all := *s
	s.Loaded, s.Out, s.byRows = chosen, p.Outputs[0], true
	rng := rand.New(rand.NewPCG(9, 10))
	for _, pt := range []dim.Point{{B: 2, L: 9, P: 0}, {B: 1, L: 4, P: 8}, {B: 3, L: 1, P: 20}, {B: 1, L: 33, P: 300}} {
		tokens := dim.Point{B: pt.B, L: pt.L + pt.P}
		mask := eval.Padding(rng, tokens, int(pt.L))
		given, err := all.given(rng, tokens, mask)
		if err != nil {
			return fail(err)
		}
		in, want, err := all.Rows(ctx, tokens, rng.NormFloat64, given)
		if err != nil {
			return fail(err)
		}
		var scores []float32 // those of the chosen rows
		for r, row := range in {
			if int64(r)%tokens.L >= pt.P {
				scores = append(scores, row...)
			}
		}
		_, got, err := s.Rows(ctx, pt, func() float64 { x := scores[0]; scores = scores[1:]; return float64(x) }, given)
		if err != nil {
			return fail(err)
		}
		for r, row := range want {
			if int64(r)%tokens.L < pt.P {
				continue
			}
			if !slices.Equal(row, got[0]) {
				return fail(fmt.Errorf("row %d of %d does not come out the same by itself", int64(r)%tokens.L, tokens.L))
			}
			got = got[1:]
		}
	}
	return chosen, nil
}
