package rewrite

import (
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// sizedSite is a site whose sizes are known.
type sizedSite struct {
	site
	table *shapeTable
}

// sizeSites makes sized sites of those of one graph, and the table that goes with
// them: what was measured of the graph, with dimensions read by what values are to
// the sites where the model's sizes are fixed.
func sizeSites(sites []*site, of *shapeTable) ([]*sizedSite, *shapeTable) {
	t := *of
	t.dims, t.scales = maps.Clone(of.dims), map[string]bool{}
	list := make([]*sizedSite, len(sites))
	for i, s := range sites {
		for _, b := range []branch{s.query, s.key} {
			for _, scale := range b.scales {
				t.scales[scale.value] = true
			}
		}
		s.readFixed(&t)
		list[i] = s.sized(&t)
	}
	return list, &t
}

// sized moves cuts of a shape that is not understood (exporters repeat heads
// with a dimension of its own) back to the nearest rearrangement that is.
func (s *site) sized(t *shapeTable) *sizedSite {
	out := &sizedSite{site: *s, table: t}
	if c := s.key.cache; c != nil && c.past == "" {
		if ly, err := layoutOf(t.dims[c.present], lastConstant(t.dims[s.query.operand])); err != nil || !ly.canonical() {
			// Keys that are given away in a form that is no cache's: what makes them stays.
			out.key.cache = nil
			out.replaced = slices.DeleteFunc(slices.Clone(s.replaced), func(n *onnx.Node) bool { return slices.Contains(n.Outputs, c.present) })
		}
	}
	for _, b := range []*branch{&out.query, &out.key, &out.value} {
		operand := b.operand
		if b == &out.key {
			operand = s.query.operand // the key's own is transposed
		}
		channels := lastConstant(t.dims[operand])
		if len(b.beside) == 0 {
			b.cut = understood(t, b.cut, b.before, func(dims []extent) bool {
				_, err := layoutOf(dims, channels)
				return err == nil
			})
			continue
		}
		b.cut = understoodPart(t, b.cut, b.before)
		b.beside = slices.Clone(b.beside)
		for i, o := range b.beside {
			b.beside[i].cut = understoodPart(t, o.cut, o.before)
		}
	}
	return out
}

// understood returns the nearest of a cut and the rearrangements before it whose
// shape is, the cut if no one's is.
func understood(t *shapeTable, cut string, before []string, is func(dims []extent) bool) string {
	for _, v := range append([]string{cut}, before...) {
		if dims, ok := t.dims[v]; ok && is(dims) {
			return v
		}
	}
	return cut
}

// understoodPart is understood for a cut that holds some channels of several. Nothing tells
// how many these are, so that heads and channels are known by their order, or
// there is one head.
func understoodPart(t *shapeTable, cut string, before []string) string {
	for _, is := range []func(ly layout) bool{layout.canonical, func(ly layout) bool { return ly.is(batchAxis, rowAxis, mergedAxis) }} {
		found := understood(t, cut, before, func(dims []extent) bool {
			ly, err := layoutOf(dims, 0)
			return err == nil && is(ly)
		})
		if ly, err := layoutOf(t.dims[found], 0); err == nil && is(ly) {
			return found
		}
	}
	return cut
}

// readFixed settles what the dimensions of a site's values are where the model's
// sizes are fixed.
func (s *site) readFixed(t *shapeTable) {
	if t.fixed == (point{}) {
		return
	}
	done := map[string]bool{}
	read := func(value string, at int, rows extent) {
		dims, ok := t.dims[value]
		if !ok || done[value] {
			return
		}
		done[value] = true
		if at < 0 {
			at += len(dims)
		}
		t.dims[value] = t.reading(dims, at, rows)
	}
	total := totalOf(t)
	read(s.scores(), 3, total)
	read(s.softmaxInput(), 3, total)
	for _, v := range []string{s.scores(), s.softmaxInput()} {
		if dims := t.dims[v]; len(dims) == 4 && dims[2] == t.settled(lengthExtent) {
			dims[2] = lengthExtent
		}
	}
	read(s.query.operand, -2, lengthExtent)
	read(s.key.operand, -1, total)
	read(s.value.operand, -2, total)
	for _, b := range []branch{s.key, s.value} {
		if c := b.store(); c != nil {
			read(c.past, 2, pastExtent)
			read(c.present, 2, total)
		}
	}
	for _, v := range s.measured() {
		read(v, t.rowsAt(t.dims[v]), lengthExtent)
	}
}
