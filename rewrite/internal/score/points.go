package score

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// ends reports whether the model has a static length and no cache: its whole mask is
// evaluated then.
func (s *Scorer) ends() bool { return s.Loaded.Table.Static.L > 0 && !s.Loaded.Table.Past }

// within returns sizes close to pt at which the mask is evaluated in few runs: where each
// run has all tokens anyway, the batch is the model's static one.
func (s *Scorer) within(pt dim.Point) dim.Point {
	t := s.Loaded.Table
	if pt = s.clamped(pt); s.ends() && t.Static.B > 0 {
		pt.B = t.Static.B
	}
	return pt
}

// points returns the sizes of the samples; each is taken with another kind of padding.
func (s *Scorer) points() []dim.Point {
	list := []dim.Point{{B: 2, L: 5, P: 0}, {B: 3, L: 4, P: 6}, {B: 2, L: 1, P: 9}, {B: 2, L: 9, P: 3}, {B: 1, L: 7, P: 2}}
	if s.ends() { // a run computes every row of all tokens
		l := s.Loaded.Table.Static.L
		if list = slices.Repeat([]dim.Point{{B: 2, L: l}}, 5); l*l*s.Fed.Heads > 1<<18 {
			list = list[:2]
		}
	}
	for i := range list {
		list[i] = s.within(list[i])
	}
	return list
}
