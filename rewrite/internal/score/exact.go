package score

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/formula"
)

// Exact says for which calls a mask was compared without sampling.
type Exact = provenance.Exact

// Exact compares a fit with every small call and, where the graph computes a formula that is understood (package
// formula), with that for any number of tokens. The error says where they differ.
func (s *Scorer) Exact(ctx context.Context, fit *Fit) (e Exact, err error) {
	all := s
	if s.all != nil {
		all = s.all // what the graph computes as it is, not row by row
	}
	switch {
	case s.Evaluator == nil:
		return e, nil
	case s.ends(): // every row is compared elsewhere
		return Exact{Tokens: s.longest + 1, Why: "the model has a table or a size that ends there"}, nil
	}
	if e, err = all.smallCalls(ctx, fit); err != nil {
		return e, err
	}
	switch err := all.anyLength(ctx, fit); {
	case err == nil:
		e.AnyLength = true
	case errors.As(err, new(formula.Unread)):
		e.Tokens, e.Why = e.Width, "mask: "+err.Error()
	default:
		return e, err
	}
	if e.AnyLength {
		return e, nil
	}
	err = s.atNumbers(ctx, fit, all.numbers(), &e)
	if err != nil && !bisect.Ended(err) && fit.Mask.Bias && fit.Mask.Causal {
		fit.Mask.Causal = false // the bias has all of the mask
		return s.Exact(ctx, fit)
	}
	return e, err
}

// anyLength compares a fit with the formula that the graph computes, for every number of tokens. The error is
// formula.Unread where it computes none that is understood.
func (s *Scorer) anyLength(ctx context.Context, fit *Fit) error {
	dims, err := s.Evaluator.Dims(ctx, s.Loaded.Piece)
	switch {
	case err != nil && bisect.Ended(err):
		return err
	case err != nil || !formula.Reads(s.Loaded.Table):
		return formula.Unread{Why: "its sizes are others than those of a growing row"}
	}
	r := formula.NewReader(s.Loaded.Piece, s.Loaded.Table, dims, s.In, s.Mask)
	if err := r.Follows(s.In); err != nil {
		return err
	}
	sees := func(p formula.Point) bool {
		d := p.Distance()
		return (!fit.Mask.Causal || d >= 0) && (fit.Mask.Window == 0 || max(d, -d) < fit.Mask.Window) && (!fit.Mask.Padding || p.KeyReal)
	}
	asked := func(p formula.Point, seen bool) bool { return seen == sees(p) }
	if fit.Mask.Bias {
		asked = func(p formula.Point, seen bool) bool { return fit.happens(p, seen) }
	}
	differs, shown, err := r.Decide(s.Out, s.Read, asked, max(fit.Mask.Window-1, 0), Masked)
	switch {
	case err != nil:
		return err
	case differs != nil:
		return fmt.Errorf("%v, visible is %v, expected %v of %s", differs, !sees(*differs), sees(*differs), fit.Mask.String())
	case !fit.Mask.Bias && !r.Alike(shown, fit.byDistance):
		return formula.Unread{Why: "what is added to visible keys is not one number"}
	}
	return nil
}

// happens notes what a mask that stays the model's own does at a point. Where it has later keys, the bias has all of it.
func (f *Fit) happens(p formula.Point, seen bool) bool {
	own := p.Distance() == 0 && !seen
	f.Mask.Causal = f.Mask.Causal && (!seen || p.Distance() >= 0)
	f.Cases.RealSeesPadded = f.Cases.RealSeesPadded || seen && p.OwnReal && !p.KeyReal
	f.Cases.RealWithoutKeys = f.Cases.RealWithoutKeys || own && p.OwnReal
	f.Cases.PaddedWithoutKeys = f.Cases.PaddedWithoutKeys || own && !p.OwnReal
	return true
}

// mostNumbers is how many numbers of a graph that is no formula are looked at.
const mostNumbers = 24

// numbers are those of the piece's constants that small calls do not reach.
func (s *Scorer) numbers() (list []int64) {
	for _, t := range s.Loaded.Piece.Consts {
		if t.Len() > mostNumbers {
			continue
		}
		values, err := t.Float64s()
		if err != nil {
			continue
		}
		for _, x := range values {
			if n := int64(max(x, -x)); n > dim.SmallWidth-2 && n <= dim.Longest {
				list = append(list, n)
			}
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), mostNumbers)]
}

// atNumbers compares the fit one below, at and above every number that the graph has.
func (s *Scorer) atNumbers(ctx context.Context, fit *Fit, list []int64, e *Exact) error {
	rng := rand.New(rand.NewPCG(33, 34))
	for _, number := range list {
		for _, length := range []int64{1, 3} {
			for total := max(number-1, length); total <= number+2; total++ {
				pt := dim.Point{L: length, P: total - length}
				rows := s.fewPaddings(total)
				if s.clamped(pt) != pt || total > s.longest+1 || s.whole && total*total*s.Fed.Heads*int64(len(rows)) > maxLater {
					continue
				}
				if err := s.compareCalls(ctx, rng, fit, pt, [][][]int64{rows}, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fewPaddings returns a row without padding, with one padded token on the left, on the right, and with a hole.
func (s *Scorer) fewPaddings(total int64) [][]int64 {
	list := [][]int64{slices.Repeat([]int64{1}, int(total))}
	if s.Mask == "" || s.together(4) < 4 {
		return list
	}
	for _, at := range []int64{0, total - 1, total / 2} {
		row := slices.Clone(list[0])
		row[at] = 0
		list = append(list, row)
	}
	return list
}
