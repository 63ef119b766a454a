package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// ChooseRows makes a scorer compute chosen rows, and checks that they are those
// of the whole.
func ChooseRows(ctx context.Context, l *eval.Evaluator, whole *eval.Loaded, s *Scorer) (*eval.Loaded, error) {
	p, err := l.ByRows(ctx, whole.Piece, 2)
	if err != nil {
		return nil, err
	}
	chosen, err := l.Load(ctx, p)
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
		var scores []float32 // of the chosen rows
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

// ends reports whether the model has a fixed length: all that its mask can be is
// looked at.
func (s *Scorer) ends() bool { return s.Loaded.Table.Static.L > 0 && !s.Loaded.Table.Past }

// within returns sizes that the mask is evaluated at in few runs: where each run
// has all tokens anyway, the batch is the model's own.
func (s *Scorer) within(pt dim.Point) dim.Point {
	t := s.Loaded.Table
	if pt = t.Within(pt); s.ends() && t.Static.B > 0 {
		pt.B = t.Static.B
	}
	return pt
}

// points are the sizes that samples are taken at, each with another kind of padding.
func (s *Scorer) points() []dim.Point {
	list := []dim.Point{{B: 2, L: 5, P: 0}, {B: 3, L: 4, P: 6}, {B: 2, L: 1, P: 9}, {B: 2, L: 9, P: 3}, {B: 1, L: 7, P: 2}}
	if s.ends() { // all tokens, of which a run computes every row
		l := s.Loaded.Table.Static.L
		if list = slices.Repeat([]dim.Point{{B: 2, L: l}}, 5); l*l*s.Heads > 1<<18 {
			list = list[:2]
		}
	}
	for i := range list {
		list[i] = s.within(list[i])
	}
	return list
}
