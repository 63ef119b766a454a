package score

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/control"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Exact says for which calls a mask was compared without sampling.
type Exact = provenance.Exact

// Exact compares a fit with every small call, and with every small call of copies that have small numbers in the
// place of large ones (package control). The error says where they differ.
func (s *Scorer) Exact(ctx context.Context, fit *Fit) (e Exact, err error) {
	all := s
	if s.all != nil {
		all = s.all // what the graph computes as it is, not row by row
	}
	if s.ends() || s.Evaluator == nil {
		return e, nil // every row is compared elsewhere
	}
	if e, err = all.smallCalls(ctx, fit, control.Width); err != nil {
		return e, err
	}
	if err := all.pairsOfRows(ctx, fit, &e); err != nil {
		return e, err
	}
	part := control.Of(all.Loaded.Piece, s.Mask)
	if err := s.atNumbers(ctx, fit, part, &e); err != nil {
		return e, err
	}
	if err := all.smallNumbers(ctx, fit, part, &e); err != nil {
		return e, err
	}
	e.Tokens = fit.upTo(part, e.Width)
	return e, nil
}

// upTo is Exact.Tokens: any number where the graph does nothing but compare, add and slice, and every number that
// it compares with has a copy.
func (f *Fit) upTo(part *control.Part, width int64) int64 {
	first := part.Fixed
	less := func(number int64) {
		if first == 0 || number < first {
			first = number
		}
	}
	switch w := f.Mask.Window; {
	case f.Mask.Bias && !f.Mask.Causal:
		return 0 // the graph's own nodes stay
	case part.Other != nil:
		return width
	case f.byDistance || !part.Fits(f.ends):
		for _, run := range part.Runs {
			if !f.ends(run[0]) {
				less(run[0])
			}
		}
	case w > control.Small && !part.Near(w):
		less(w)
	}
	if first > 0 {
		return max(first-1, width)
	}
	return 0
}

// ends reports whether a number is where the model's own table ends.
func (f *Fit) ends(number int64) bool {
	return f.Tokens <= dim.Longest && number >= f.Tokens-1 && number <= f.Tokens+1
}

// smallNumbers compares the fit with every small call of copies. Of a bias that is not causal it finds only what
// happens to queries.
func (s *Scorer) smallNumbers(ctx context.Context, fit *Fit, part *control.Part, e *Exact) error {
	if fit.byDistance || !part.Fits(fit.ends) {
		return nil
	}
	for c := range part.Copies(fit.ends) {
		loaded, err := s.Evaluator.Load(ctx, c.Piece)
		if err != nil && !bisect.Ended(err) {
			part.Fix(part.Runs[0][0]) // so it says nothing
			return nil
		}
		if err != nil {
			return err
		}
		other, like := *s, *fit
		other.Loaded = loaded
		if w := fit.Mask.Window; w > control.Small {
			like.Mask.Window = c.Near(w)
		}
		small, err := other.smallCalls(ctx, &like, copyWidth)
		loaded.Session.Close()
		e.Rows += small.Rows
		fit.Cases = like.Cases
		switch {
		case err == nil:
		case bisect.Ended(err):
			return err
		case errors.As(err, new(control.NotRun)):
			part.Fix(part.Runs[0][0])
			return nil
		case fit.Mask.Bias && fit.Mask.Causal:
			fit.Mask.Causal = false // the bias has all of the mask
			return s.smallNumbers(ctx, fit, part, e)
		default:
			return fmt.Errorf("it changes at %s: with %d there, %w", numbers(part.Runs), c.Of(part.Runs[0][0]), err)
		}
	}
	return nil
}

// numbers lists the first of each run.
func numbers(runs [][]int64) string {
	text := ""
	for _, run := range runs {
		text += fmt.Sprintf(", %d", run[0])
	}
	return text[2:]
}

// atNumbers compares the fit one below, at and above every number that the graph compares with.
func (s *Scorer) atNumbers(ctx context.Context, fit *Fit, part *control.Part, e *Exact) error {
	rng := rand.New(rand.NewPCG(33, 34))
	for _, number := range slices.Concat(part.Runs...) {
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
