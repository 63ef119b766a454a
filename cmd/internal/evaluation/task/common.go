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
	often, seldom := max(c.Form.Often, 1), max(c.Form.Seldom, 1)
	example := repeats{40, 10, 3}
	if c.Length < shortList {
		often, seldom, example = max(often/5, 2), max(seldom/3, 1), repeats{20, 3, 1}
	}
	example.words = max(example.words, 2*c.Form.Needles)
	return c.books(c.Form.Needles+1, func(rng *rand.Rand, n int) book {
		b := drawList(rng, repeats{n, often, seldom}, c.Form.Needles).book(c.Form)
		if c.Form.Example {
			other := drawList(rng, example, c.Form.Needles).book(c.Form)
			other.asked[0].answers = c.Form.numbered(other.asked[0].answers)
			b.example = c.Form.example(other) + "\n"
		}
		return b
	})
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
