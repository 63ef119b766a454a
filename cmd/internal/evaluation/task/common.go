package task

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// repeats says how many different words a list has, and how often the common and the other ones come.
type repeats struct{ words, often, seldom int }

// shortList is the length below which words come less often, as in RULER: common ones a fifth, others a third.
const shortList = 4096

// common makes the samples of common words: a numbered list, some words of which come often, the others
// seldom. Every text has one question, so that samples share nothing.
func common(c *Cell) ([]Sample, error) {
	list, example := c.repeats()
	return c.books(c.Form.Needles+1, func(rng *rand.Rand, n int) book {
		b := drawList(rng, repeats{n, list.often, list.seldom}, c.Form.Needles).book(c.Form)
		if c.Form.Example {
			b.example = c.Form.listExample(drawList(rng, example, c.Form.Needles))
		}
		return b
	})
}

// repeats are those of a list, whose number of words is open, and of the example before it.
func (c *Cell) repeats() (list, example repeats) {
	list, example = repeats{0, max(c.Form.Often, 2), max(c.Form.Seldom, 1)}, repeats{40, 10, 3}
	if c.Length < shortList {
		list.often, list.seldom, example = max(list.often/5, 2), max(list.seldom/3, 1), repeats{20, 3, 1}
	}
	return list, example
}

// listExample is a list with the question and its answer.
func (f Form) listExample(d listDrawn) string {
	b := d.book(f)
	b.asked[0].answers = f.numbered(d.Common)
	return f.example(b) + "\n"
}

// listDrawn is what chance decides in a list of words.
type listDrawn struct {
	Common []string
	List   []string // each word as often as it comes
}

func drawList(rng *rand.Rand, r repeats, common int) (d listDrawn) {
	words := manyWords(rng, r.words)
	d.Common = words[:common]
	d.List = slices.Concat(slices.Repeat(d.Common, r.often), slices.Repeat(words[common:], r.seldom))
	rng.Shuffle(len(d.List), func(i, j int) { d.List[i], d.List[j] = d.List[j], d.List[i] })
	return d
}

// book is the text of what was drawn.
func (d listDrawn) book(f Form) book {
	return book{haystack: f.joined(f.numbered(d.List)), asked: []asked{{map[string]string{"count": strconv.Itoa(len(d.Common))}, d.Common}}}
}

// numbered writes each word with its number.
func (f Form) numbered(words []string) (list []string) {
	for i, w := range words {
		list = append(list, filled(f.Needle, map[string]string{"name": strconv.Itoa(i + 1), "key": w}))
	}
	return list
}
