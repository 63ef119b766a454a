package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// chainsDrawn is what chance decides in a text of variables.
type chainsDrawn struct {
	Lines  int        // of noise
	Values []string   // what the first variable of each chain is set to
	Chains [][]string // names of variables, each of which gets its value from the one before
	Places [][]int    // of each chain, among the lines and the chains before it: where its variables stand
}

// exampleLines is how many lines of noise an answered example has: RULER's has about 500 tokens.
const exampleLines = 12

// chains makes the samples of variable tracking: assignments in noise, some of which copy a variable. RULER asks for
// the variables of the one chain of a text. Here a text has Form.Share chains, and a sample asks about one of them.
func chains(c *Cell) ([]Sample, error) {
	return c.books(c.Form.Needles, func(rng *rand.Rand, n int) book {
		d := drawChains(rng, n, max(c.Form.Share, 1), c.Form.Needles, 5)
		b := d.book(c.Form)
		if c.Form.Example {
			b.example = c.Form.example(drawChains(rng, exampleLines, 1, c.Form.Needles, 3).book(c.Form)) + "\n\n"
		}
		return b
	})
}

// drawChains draws a text of n lines with chains of variables whose names have so many letters.
func drawChains(rng *rand.Rand, n, chains, variables, letters int) (d chainsDrawn) {
	d.Lines = n
	seen := map[string]bool{}
	for i := range chains {
		var chain []string
		for range variables {
			chain = append(chain, distinct(seen, func() string { return word(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", letters) }))
		}
		d.Chains = append(d.Chains, chain)
		d.Values = append(d.Values, distinct(seen, func() string { return number(rng) }))
		d.Places = append(d.Places, places(rng, n+i*variables, variables))
	}
	return d
}

// book is the text of what was drawn.
func (d chainsDrawn) book(f Form) (b book) {
	pieces := slices.Repeat([]string{strings.TrimSpace(f.Haystack)}, d.Lines)
	for i, chain := range d.Chains {
		var lines []string
		values := map[string]string{"key": d.Values[i]}
		for j, name := range chain {
			values["previous"], values["name"] = values["name"], name
			lines = append(lines, filled(f.needle(j), values))
		}
		pieces = insert(pieces, lines, d.Places[i])
		b.asked = append(b.asked, asked{map[string]string{"key": d.Values[i], "count": fmt.Sprint(len(chain))}, chain})
	}
	b.haystack = f.joined(pieces)
	return b
}

// example is a text with a question and its answer.
func (f Form) example(b book) string {
	p := f.prompt(b.haystack, b.asked[0].values)
	return p.Text + p.Answer + " " + strings.Join(b.asked[0].answers, " ")
}
