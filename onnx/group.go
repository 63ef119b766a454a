package onnx

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// group is the fields of one number: as they were read and as they are now.
type group struct {
	num  protowire.Number
	was  []field
	now  []item
	same bool

	records int               // records of the number in the source
	seen    int               // of which were passed
	done    int               // items of now that were written
	places  map[itemKey][]int // where in now, from done on, a field of the source stands, changed or not
}

// itemKey tells fields apart: a small field by its text, a child or blob by
// where its contents begin.
type itemKey struct {
	text  string
	first *byte
}

func keyOf(f field) itemKey {
	switch {
	case f.child != nil:
		for _, piece := range f.child.origin() {
			if len(piece) > 0 {
				return itemKey{first: &piece[0]}
			}
		}
	case f.record != nil:
		return itemKey{text: string(f.record)}
	case len(f.blob) > 0:
		return itemKey{first: &f.blob[0]}
	}
	return itemKey{}
}

// pair collects fields by number, in the order in which numbers appear in now.
func pair(was []field, now []item) []*group {
	var groups []*group
	of := func(num protowire.Number) *group {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.num == num })
		if i < 0 {
			i, groups = len(groups), append(groups, &group{num: num})
		}
		return groups[i]
	}
	for _, it := range now {
		g := of(it.num)
		g.now = append(g.now, it)
	}
	for _, f := range was {
		g := of(f.num)
		g.was = append(g.was, f)
	}
	for _, g := range groups {
		g.same = len(g.was) == len(g.now)
		for i := 0; g.same && i < len(g.was); i++ {
			g.same = g.now[i].is(g.was[i])
		}
	}
	return groups
}

// splice copies the records of src, replacing those of groups that changed.
func splice(src source, groups []*group) (out chunks) {
	changed := make(map[protowire.Number]*group)
	for _, g := range groups {
		if !g.same {
			changed[g.num] = g
			g.index()
		}
	}
	// The source was read before, so walking it cannot fail.
	_ = src.each(func(r record) error {
		if g := changed[r.num]; g != nil {
			g.records++
		}
		return nil
	})
	_ = src.each(func(r record) error {
		if g := changed[r.num]; g != nil {
			g.pass(r, &out)
		} else {
			out.add(r.all)
		}
		return nil
	})
	for _, g := range groups {
		if !g.same {
			g.write(len(g.now), &out)
		}
	}
	return out
}

func (g *group) index() {
	g.places = make(map[itemKey][]int)
	for i, it := range g.now {
		if key := keyOf(it.field); !it.changed || key != (itemKey{}) {
			g.places[key] = append(g.places[key], i)
		}
	}
}

// write writes the items of now before end that were not yet written.
func (g *group) write(end int, out *chunks) {
	for ; g.done < end; g.done++ {
		out.put(g.now[g.done])
	}
}

// pass handles one record of a group that changed: it writes what stands
// before the record now, then the record if it is still there, or what became of it.
func (g *group) pass(r record, out *chunks) {
	k := g.seen
	g.seen++
	if g.records != len(g.was) {
		// Records and fields do not correspond, as in a packed list or a field
		// given twice: the new fields stand where the first record stood.
		g.write(len(g.now), out)
		return
	}
	key := keyOf(g.was[k])
	for len(g.places[key]) > 0 {
		i := g.places[key][0]
		g.places[key] = g.places[key][1:]
		switch {
		case i < g.done:
		case g.now[i].changed:
			g.write(i+1, out)
			return
		case g.now[i].is(g.was[k]):
			g.write(i, out)
			out.add(r.all)
			g.done = i + 1
			return
		}
	}
	if len(g.was) == len(g.now) && g.done == k && !g.stood(g.now[k]) { // one value in place of another
		g.write(k+1, out)
	}
}

// stood reports whether an item is one of the fields that were read.
func (g *group) stood(it item) bool {
	key := keyOf(it.field)
	return key != (itemKey{}) && slices.ContainsFunc(g.was, func(f field) bool { return keyOf(f) == key })
}
