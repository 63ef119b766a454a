package task

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// book is a long text with the questions that are asked about it.
type book struct {
	example  string // a text, its question and their answer, which stand before
	haystack string
	cuts     []int // where in the haystack documents begin, and where the last one ends; nil for one text
	asked    []asked
}

// asked is one question about a text.
type asked struct {
	values  map[string]string // of the braces of question and answer
	answers []string
}

// prompt is the question i about a text.
func (c *Cell) prompt(b book, i int) Prompt {
	p := c.Form.prompt(b.haystack, b.asked[i].values)
	p.Text = b.example + p.Text
	for _, at := range b.cuts {
		p.Cuts = append(p.Cuts, len(b.example)+len(c.Form.Before)+at)
	}
	return p
}

// books makes samples of texts that are drawn one after the other, Form.Share samples of each. draw makes a
// text of n units, least or more. Each text is as long as it may be, since words of the same number have
// more or fewer tokens.
func (c *Cell) books(least int, draw func(rng *rand.Rand, n int) book) ([]Sample, error) {
	var list []Sample
	for group := 0; len(list) < c.Samples; group++ {
		drawn := func(n int) book { return draw(c.random(0, group), n) }
		n, err := c.fit(least, func(n int) Prompt { return c.prompt(drawn(n), 0) })
		if err != nil {
			return nil, err
		}
		some, err := c.fitting(drawn, least, n)
		if err != nil {
			return nil, err
		}
		for _, s := range some[:min(len(some), c.Samples-len(list))] {
			s.Index, s.Group = len(list), group+1
			list = append(list, s)
		}
	}
	// What several texts begin with, as noise before a needle, they share too.
	slices.SortStableFunc(list, func(a, b Sample) int { return strings.Compare(a.Text, b.Text) })
	return list, nil
}

// fitting are the samples of a text of n units, or of some less where its other questions are longer than the first.
func (c *Cell) fitting(drawn func(n int) book, least, n int) ([]Sample, error) {
	for ; n >= least; n-- {
		b := drawn(n)
		var list []Sample
		long := false
		for i, a := range b.asked {
			p := c.prompt(b, i)
			tokens, err := c.Count(p)
			if err != nil {
				return nil, err
			}
			long = long || tokens > c.Length-c.Form.Tokens
			list = append(list, Sample{Prompt: p, Answers: a.answers, Need: len(a.answers)})
		}
		if !long {
			return list, nil
		}
	}
	return nil, fmt.Errorf("%s: %d tokens are too few for the prompt; give larger --lengths", c.task, c.Length)
}

// joined is a text of pieces.
func (f Form) joined(pieces []string) string { return strings.Join(pieces, f.separator()) }

// separator is what stands between the pieces of a text.
func (f Form) separator() string { return cmp.Or(f.Join, " ") }

// insert puts needles before the pieces at places, which grow; len(pieces) is behind the last one.
func insert(pieces []string, needles []string, places []int) (list []string) {
	at := 0
	for i, needle := range needles {
		list = append(append(list, pieces[at:places[i]]...), needle)
		at = places[i]
	}
	return append(list, pieces[at:]...)
}

// places draws growing places for k needles among n pieces: different ones as far as there are.
func places(rng *rand.Rand, n, k int) (list []int) {
	if k <= n {
		list = rng.Perm(n)[:k]
	} else {
		for range k {
			list = append(list, rng.IntN(n+1))
		}
	}
	slices.Sort(list)
	return list
}

// distinct calls draw until it gives a text that is not among those seen, and remembers it.
func distinct(seen map[string]bool, draw func() string) string {
	for {
		if text := draw(); !seen[text] {
			seen[text] = true
			return text
		}
	}
}

// and writes a list as RULER's questions do: a, b, and c.
func and(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + ", and " + list[len(list)-1]
}
