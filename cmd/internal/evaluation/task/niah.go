package task

import (
	"fmt"
	"math/rand/v2"
)

// niah is a family of tasks, needles in a haystack: each needle tells a value of a key, and a question asks for
// all values of some keys. RULER asks one question about a text. Here Form.Share samples ask about one, each
// for other keys; a text gets as many keys as that takes.
type niah struct {
	hay          hay
	keys, values kind
}

// hay is what a haystack is made of.
type hay int

const (
	line   hay = iota // the same line again and again
	prose             // sentences
	others            // needles that nobody asks for
)

// kind is what a key or a value looks like.
type kind int

const (
	words   kind = iota // an adjective and a noun
	numbers             // of seven digits
	uuids
)

// draw draws one.
func (k kind) draw(rng *rand.Rand) string {
	switch k {
	case numbers:
		return fmt.Sprint(1_000_000 + rng.IntN(9_000_000))
	case uuids: // of version 4
		a, b := rng.Uint64(), rng.Uint64()
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&(1<<48-1))
	}
	return pick(rng, adjectives) + "-" + pick(rng, nouns)
}

// needlesDrawn is what chance decides in a text of needles.
type needlesDrawn struct {
	Pieces []string   // of the haystack
	Keys   []string   // that are hidden
	Values [][]string // of each key
	Order  []int      // in which the needles stand; those of the first key count first
	Places []int      // before which pieces they stand
	Asked  [][]int    // keys of each question
}

func (k niah) make(c *Cell) ([]Sample, error) {
	least := 1
	if k.hay == others {
		least = 0
	}
	return c.books(least, func(rng *rand.Rand, n int) book { return k.draw(rng, c.Form, n).book(c.Form) })
}

// draw draws a text of n pieces.
func (k niah) draw(rng *rand.Rand, f Form, n int) (d needlesDrawn) {
	share, queries := max(f.Share, 1), max(f.Queries, 1)
	seen := map[string]bool{}
	for range max(f.Needles, share*queries) {
		d.Keys = append(d.Keys, distinct(seen, func() string { return k.keys.draw(rng) }))
		var values []string
		for range max(f.Values, 1) {
			values = append(values, distinct(seen, func() string { return k.values.draw(rng) }))
		}
		d.Values = append(d.Values, values)
	}
	d.Order = rng.Perm(len(d.Keys) * max(f.Values, 1))
	keys := rng.Perm(len(d.Keys))
	for i := range share {
		d.Asked = append(d.Asked, keys[i*queries:(i+1)*queries])
	}
	switch k.hay {
	case line:
		for range n {
			d.Pieces = append(d.Pieces, f.Haystack)
		}
	case prose:
		d.Pieces = proseOf(f.Haystack, n)
	case others:
		for range n {
			name := distinct(seen, func() string { return k.keys.draw(rng) })
			d.Pieces = append(d.Pieces, filled(f.Needle, map[string]string{"name": name, "key": distinct(seen, func() string { return k.values.draw(rng) })}))
		}
	}
	d.Places = places(rng, n, len(d.Order))
	if k.hay == prose {
		d.Places = depths(rng, n, len(d.Order))
	}
	return d
}

// depths draws growing places for k needles among n pieces: some of 40 depths, equally distant from 0 % to
// 100 % but for rounding to whole percents.
func depths(rng *rand.Rand, n, k int) (list []int) {
	const all = 40
	for _, i := range places(rng, all, k) {
		i = min(i, all-1)
		list = append(list, n*((200*i+all-1)/(2*(all-1)))/100)
	}
	return list
}

// book is the text of what was drawn.
func (d needlesDrawn) book(f Form) (b book) {
	var needles []string
	for i, key := range d.Keys {
		for _, value := range d.Values[i] {
			needles = append(needles, filled(f.Needle, map[string]string{"name": key, "key": value}))
		}
	}
	var ordered []string
	for _, i := range d.Order {
		ordered = append(ordered, needles[i])
	}
	b.haystack = f.joined(insert(d.Pieces, ordered, d.Places))
	for _, keys := range d.Asked {
		var a asked
		var names []string
		for _, i := range keys {
			names, a.answers = append(names, d.Keys[i]), append(a.answers, d.Values[i]...)
		}
		a.values = map[string]string{"name": names[0], "names": and(names)}
		b.asked = append(b.asked, a)
	}
	return b
}
