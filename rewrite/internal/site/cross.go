package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Cross-attention reads keys and values of another text, an encoder's. Nothing in it is rotated
// by position: query, key and value enter the site where the heads are apart for the first
// time, and what is done to them from there on is measured.

// mayCross reports whether nothing is appended to the site's keys, as in cross-attention.
func (s *Site) mayCross() bool {
	return s.Key.Past() == "" && s.Key.Shared == nil && s.Value.Past() == "" && s.LengthTracked == nil
}

// CrossValues lists the values whose dimensions have to be measured beside SizedValues for
// Sized.Cross.
func (s *Site) CrossValues() []string {
	if !s.mayCross() {
		return nil
	}
	var list []string
	for _, operand := range []string{s.Query.Operand, s.Key.Operand, s.Value.Operand} {
		list = append(list, near(s.Graph, operand, false)...)
	}
	return ir.Unique(list)
}

// Cross returns the site as one of cross-attention, nil where its scores are not those of
// queries against the keys of another text.
func (s *Sized) Cross() *Sized {
	if _, ok := dim.GridOf(s.Table.Dims[s.Scores()], dim.SourceExtent); !ok || !s.mayCross() {
		return nil
	}
	out := &Sized{Site: s.Site, Table: s.Table}
	out.Crosses, out.Replaced, out.escaping = true, nil, nil
	channels, valueChannels := dim.LastConstant(s.Table.Dims[s.Query.Operand]), dim.LastConstant(s.Table.Dims[s.Value.Operand])
	heads := s.fewestHeads(s.Value.Operand, valueChannels)
	out.Query = s.enters(s.Query.Operand, channels, 0, dim.LengthExtent)
	out.Key = s.enters(s.Key.Operand, channels, heads, dim.SourceExtent)
	out.Value = s.enters(s.Value.Operand, valueChannels, heads, dim.SourceExtent)
	boundaries := []string{out.Query.Boundary, out.Key.Boundary, out.Value.Boundary}
	if slices.Contains(boundaries, "") || leak(s.Graph, out.Output(), boundaries) != "" || noteReplaced(s.Graph, &out.Site) != nil || out.escaping != nil {
		return nil
	}
	return out
}

// fewestHeads is the smallest number of heads among the values near an operand: that of keys
// and values before they are repeated for groups of query heads.
func (s *Sized) fewestHeads(operand string, channels int64) (heads int64) {
	for _, v := range near(s.Graph, operand, false) {
		if ly, err := dim.LayoutOf(s.Table.Dims[v], channels); err == nil && (heads == 0 || ly.Heads < heads) {
			heads = ly.Heads
		}
	}
	return heads
}

// enters is the branch to an operand from the first value with these rows and heads, if one is
// known; heads 0 are any. A value [batch, heads, rows, channels] is taken before others, since
// the op reads it as it is.
func (s *Sized) enters(operand string, channels, heads int64, rows dim.Extent) Branch {
	b := Branch{Operand: operand}
	canonical := false
	for _, v := range near(s.Graph, operand, false) {
		ly, err := dim.LayoutOf(s.Table.Dims[v], channels)
		if err == nil && ly.Rows == rows && (heads == 0 || ly.Heads == heads) && (ly.Canonical() || !canonical) {
			b.Boundary, canonical = v, ly.Canonical()
		}
	}
	return b
}
