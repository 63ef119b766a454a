package task

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mathext"
)

// noise takes the place of the most frequent coded word.
const noise = "..."

// coded makes the samples of frequent words: invented words, the k-th of which comes in proportion to 1/kᵅ. The
// first is noise, and the next Form.Needles are asked for. Every text has one question, so that samples share nothing.
func coded(c *Cell) ([]Sample, error) {
	if c.Form.Alpha <= 1 {
		return nil, errors.New("fwe: alpha: expected a number above 1")
	}
	wanted, size := c.Form.Needles, c.vocabulary()
	least := 1 // the last word that is asked for comes more often than the next
	for counts := codedCounts(least, size, c.Form.Alpha); counts[wanted] <= counts[wanted+1] && least < c.Length; least++ {
		counts = codedCounts(least+1, size, c.Form.Alpha)
	}
	return c.books(least, func(rng *rand.Rand, n int) book { return drawCoded(rng, n, size, c.Form).book(c.Form) })
}

// vocabulary is how many coded words there are, as in RULER: one for 50 tokens of the text.
func (c *Cell) vocabulary() int { return max((c.Length-c.Form.Tokens)/50, c.Form.Needles+2) }

// codedDrawn is what chance decides in a coded text.
type codedDrawn struct {
	Frequent []string // that are asked for
	List     []string // the text
}

func drawCoded(rng *rand.Rand, n, size int, f Form) (d codedDrawn) {
	seen := map[string]bool{}
	vocabulary := []string{noise}
	for range size - 1 {
		vocabulary = append(vocabulary, distinct(seen, func() string { return word(rng, "abcdefghijklmnopqrstuvwxyz", 6) }))
	}
	d.Frequent = vocabulary[1 : f.Needles+1]
	for i, count := range codedCounts(n, size, f.Alpha) {
		d.List = append(d.List, slices.Repeat(vocabulary[i:i+1], count)...)
	}
	rng.Shuffle(len(d.List), func(i, j int) { d.List[i], d.List[j] = d.List[j], d.List[i] })
	return d
}

// codedCounts is how often each word comes of about n: the zeta distribution's share, rounded down.
func codedCounts(n, size int, alpha float64) (counts []int) {
	for k := range size {
		counts = append(counts, int(float64(n)*math.Pow(float64(k+1), -alpha)/mathext.Zeta(alpha, 1)))
	}
	return counts
}

// book is the text of what was drawn.
func (d codedDrawn) book(f Form) book {
	var pieces []string
	for _, w := range d.List {
		pieces = append(pieces, filled(f.Needle, map[string]string{"key": w}))
	}
	return book{haystack: f.joined(pieces), asked: []asked{{map[string]string{"count": strconv.Itoa(len(d.Frequent))}, d.Frequent}}}
}
