package site

import (
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// Sized is a site with the dimensions of its values. Its boundaries are the nearest
// ones of a shape that is understood.
type Sized struct {
	Site
	Table *eval.ShapeTable
}

// Size returns the sites of one graph as sized sites, and a copy of the shape table for
// them. In a model of static sizes the copy also says which dimensions are batch,
// length and past, as far as the sites tell. The arguments are not changed.
func Size(sites []*Site, of *eval.ShapeTable) ([]*Sized, *eval.ShapeTable) {
	t := *of
	t.Dims, t.Inputs, t.Sizes, t.Scales = maps.Clone(of.Dims), maps.Clone(of.Inputs), maps.Clone(of.Sizes), map[string]bool{}
	list := make([]*Sized, len(sites))
	read := func(s *Site) {
		for _, b := range []Branch{s.Query, s.Key} {
			for _, scale := range b.Scales {
				t.Scales[scale.Value] = true
			}
		}
		s.readStatic(&t)
	}
	for _, s := range sites {
		read(s)
		if u := s.Unrounded(); u != nil {
			read(u)
		}
	}
	readSlots(sites, &t)
	for i, s := range sites {
		list[i] = s.sized(&t)
	}
	return list, &t
}

// sized returns the site with its dimensions. A boundary whose shape is not understood
// (exporters repeat heads with a dimension of its own) is moved back to the nearest
// rearrangement of it that is.
func (s *Site) sized(t *eval.ShapeTable) *Sized {
	out := &Sized{Site: *s, Table: t}
	if c := s.Key.Cache; c != nil && c.Past == "" {
		if ly, err := dim.LayoutOf(t.Dims[c.Present], dim.LastConstant(t.Dims[s.Query.Operand])); err != nil || !ly.Canonical() {
			// Keys given as an output, but not as [batch, heads, tokens, channels]: their nodes stay in the model.
			out.Key.Cache = nil
			out.Replaced = slices.DeleteFunc(slices.Clone(s.Replaced), func(n *onnx.Node) bool { return slices.Contains(n.Outputs, c.Present) })
		}
	}
	for _, b := range []*Branch{&out.Query, &out.Key, &out.Value} {
		operand := b.Operand
		if b == &out.Key {
			operand = s.Query.Operand // that of the key is transposed
		}
		channels := dim.LastConstant(t.Dims[operand])
		if len(b.Parts) == 0 {
			b.Boundary = nearestRecognised(t, b.Boundary, b.rearrangements, func(dims []dim.Extent) bool {
				_, err := dim.LayoutOf(dims, channels)
				return err == nil
			})
			continue
		}
		b.Boundary = nearestRecognisedPart(t, b.Boundary, b.rearrangements)
		b.Parts = slices.Clone(b.Parts)
		for i, o := range b.Parts {
			b.Parts[i].boundary = nearestRecognisedPart(t, o.boundary, o.rearrangements)
		}
	}
	return out
}

// nearestRecognised returns the first of a boundary and its rearrangements whose
// dimensions are recognised, the boundary itself where none are.
func nearestRecognised(t *eval.ShapeTable, boundary string, rearrangements []string, recognised func(dims []dim.Extent) bool) string {
	for _, v := range append([]string{boundary}, rearrangements...) {
		if dims, ok := t.Dims[v]; ok && recognised(dims) {
			return v
		}
	}
	return boundary
}

// nearestRecognisedPart is nearestRecognised for a boundary that holds some of a head's
// channels. How many is not known. So heads and channels are told apart by their
// order, or there is one head.
func nearestRecognisedPart(t *eval.ShapeTable, boundary string, rearrangements []string) string {
	for _, recognised := range []func(ly dim.Layout) bool{dim.Layout.Canonical, func(ly dim.Layout) bool { return ly.Is(dim.BatchAxis, dim.RowAxis, dim.MergedAxis) }} {
		found := nearestRecognised(t, boundary, rearrangements, func(dims []dim.Extent) bool {
			ly, err := dim.LayoutOf(dims, 0)
			return err == nil && recognised(ly)
		})
		if ly, err := dim.LayoutOf(t.Dims[found], 0); err == nil && recognised(ly) {
			return found
		}
	}
	return boundary
}

// readStatic says in t which dimensions of the site's values are batch, length and past
// where the model has static sizes: there the numbers alone do not tell.
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
	read(s.Scores(), -1, total)
	read(s.SoftmaxInput(), -1, total)
	for _, v := range []string{s.Scores(), s.SoftmaxInput()} {
		if dims := t.Dims[v]; len(dims) > 2 && dims[len(dims)-2] == t.WithStatic(dim.LengthExtent) {
			dims[len(dims)-2] = dim.LengthExtent
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
