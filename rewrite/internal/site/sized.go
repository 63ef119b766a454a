package site

import (
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// Sized is a site whose sizes are known.
type Sized struct {
	Site
	Table *eval.ShapeTable
}

// Size makes sized sites of those of one graph, and the table that goes with
// them: what was measured of the graph, with dimensions read by what values are to
// the sites where the model's sizes are fixed.
func Size(sites []*Site, of *eval.ShapeTable) ([]*Sized, *eval.ShapeTable) {
	t := *of
	t.Dims, t.Scales = maps.Clone(of.Dims), map[string]bool{}
	list := make([]*Sized, len(sites))
	for i, s := range sites {
		for _, b := range []Branch{s.Query, s.Key} {
			for _, scale := range b.Scales {
				t.Scales[scale.Value] = true
			}
		}
		s.readStatic(&t)
		list[i] = s.sized(&t)
	}
	return list, &t
}

// sized moves cuts of a shape that is not understood (exporters repeat heads
// with a dimension of its own) back to the nearest rearrangement that is.
func (s *Site) sized(t *eval.ShapeTable) *Sized {
	out := &Sized{Site: *s, Table: t}
	if c := s.Key.Cache; c != nil && c.Past == "" {
		if ly, err := dim.LayoutOf(t.Dims[c.Present], dim.LastConstant(t.Dims[s.Query.Operand])); err != nil || !ly.Canonical() {
			// Keys that are given away in a form that is no cache's: what makes them stays.
			out.Key.Cache = nil
			out.Replaced = slices.DeleteFunc(slices.Clone(s.Replaced), func(n *onnx.Node) bool { return slices.Contains(n.Outputs, c.Present) })
		}
	}
	for _, b := range []*Branch{&out.Query, &out.Key, &out.Value} {
		operand := b.Operand
		if b == &out.Key {
			operand = s.Query.Operand // the key's own is transposed
		}
		channels := dim.LastConstant(t.Dims[operand])
		if len(b.Parts) == 0 {
			b.Boundary = understood(t, b.Boundary, b.rearrangements, func(dims []dim.Extent) bool {
				_, err := dim.LayoutOf(dims, channels)
				return err == nil
			})
			continue
		}
		b.Boundary = understoodPart(t, b.Boundary, b.rearrangements)
		b.Parts = slices.Clone(b.Parts)
		for i, o := range b.Parts {
			b.Parts[i].boundary = understoodPart(t, o.boundary, o.rearrangements)
		}
	}
	return out
}

// understood returns the nearest of a cut and the rearrangements before it whose
// shape is, the cut if no one's is.
func understood(t *eval.ShapeTable, cut string, before []string, is func(dims []dim.Extent) bool) string {
	for _, v := range append([]string{cut}, before...) {
		if dims, ok := t.Dims[v]; ok && is(dims) {
			return v
		}
	}
	return cut
}

// understoodPart is understood for a cut that holds some channels of several. Nothing tells
// how many these are, so that heads and channels are known by their order, or
// there is one head.
func understoodPart(t *eval.ShapeTable, cut string, before []string) string {
	for _, is := range []func(ly dim.Layout) bool{dim.Layout.Canonical, func(ly dim.Layout) bool { return ly.Is(dim.BatchAxis, dim.RowAxis, dim.MergedAxis) }} {
		found := understood(t, cut, before, func(dims []dim.Extent) bool {
			ly, err := dim.LayoutOf(dims, 0)
			return err == nil && is(ly)
		})
		if ly, err := dim.LayoutOf(t.Dims[found], 0); err == nil && is(ly) {
			return found
		}
	}
	return cut
}

// readStatic settles what the dimensions of a site's values are where the model's
// sizes are fixed.
func (s *Site) readStatic(t *eval.ShapeTable) {
	if t.Static == (dim.Point{}) {
		return
	}
	done := map[string]bool{}
	read := func(value string, at int, rows dim.Extent) {
		dims, ok := t.Dims[value]
		if !ok || done[value] {
			return
		}
		done[value] = true
		if at < 0 {
			at += len(dims)
		}
		t.Dims[value] = t.Reading(dims, at, rows)
	}
	total := eval.TotalOf(t)
	read(s.Scores(), 3, total)
	read(s.SoftmaxInput(), 3, total)
	for _, v := range []string{s.Scores(), s.SoftmaxInput()} {
		if dims := t.Dims[v]; len(dims) == 4 && dims[2] == t.Settled(dim.LengthExtent) {
			dims[2] = dim.LengthExtent
		}
	}
	read(s.Query.Operand, -2, dim.LengthExtent)
	read(s.Key.Operand, -1, total)
	read(s.Value.Operand, -2, total)
	for _, b := range []Branch{s.Key, s.Value} {
		if c := b.Update(); c != nil {
			read(c.Past, 2, dim.PastExtent)
			read(c.Present, 2, total)
		}
	}
	for _, v := range s.SizedValues() {
		read(v, t.RowsAt(t.Dims[v]), dim.LengthExtent)
	}
}
