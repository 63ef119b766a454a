package task

import (
	"math/rand/v2"
)

// single makes the samples of questions that one of many documents answers: Form.Share about one text.
func single(c *Cell) ([]Sample, error) { return documents(c, 1, drawSingle) }

// double makes the samples of questions that take two documents: Form.Share about one text.
func double(c *Cell) ([]Sample, error) { return documents(c, 2, drawDouble) }

// documentsDrawn is what chance decides in a text of documents.
type documentsDrawn struct {
	Documents []string
	Asked     []questionDrawn
}

// questionDrawn is a question with its answers, any of which counts.
type questionDrawn struct {
	Question string
	Begin    string // of a sentence whose next word is the answer
	Answers  []string
}

// documents makes samples of texts that have so many documents or more for each question.
func documents(c *Cell, each int, draw func(rng *rand.Rand, n, questions int) documentsDrawn) ([]Sample, error) {
	share := max(c.Form.Share, 1)
	return c.books(each*share, func(rng *rand.Rand, n int) book { return draw(rng, n, share).book(c.Form) })
}

// book is the text of what was drawn.
func (d documentsDrawn) book(f Form) (b book) {
	pieces := f.numbered(d.Documents)
	b.haystack = f.joined(pieces)
	at := 0
	for _, piece := range pieces {
		b.cuts = append(b.cuts, at)
		at += len(piece) + len(f.separator())
	}
	b.cuts = append(b.cuts, len(b.haystack))
	for _, q := range d.Asked {
		b.asked = append(b.asked, asked{map[string]string{"name": q.Question, "begin": q.Begin}, q.Answers})
	}
	return b
}

// drawSingle draws n documents about different things, and asks about some of them.
func drawSingle(rng *rand.Rand, n, questions int) (d documentsDrawn) {
	w := world{rng: rng, seen: map[string]bool{}}
	var facts [][]questionDrawn
	for i := range n {
		text, about := w.thing(i)
		d.Documents, facts = append(d.Documents, text), append(facts, about)
	}
	d.shuffle(rng)
	for _, i := range rng.Perm(n)[:questions] {
		d.Asked = append(d.Asked, facts[i][rng.IntN(len(facts[i]))])
	}
	return d
}

// drawDouble draws n documents, most of them in pairs: about a work, and about the person who made it.
func drawDouble(rng *rand.Rand, n, questions int) (d documentsDrawn) {
	w := world{rng: rng, seen: map[string]bool{}}
	var facts [][]questionDrawn
	for i := range (n + 1) / 2 {
		work, person, about := w.work(i)
		d.Documents, facts = append(d.Documents, work, person), append(facts, about)
	}
	d.Documents = d.Documents[:n]
	d.shuffle(rng)
	for _, i := range rng.Perm(n / 2)[:questions] { // whose documents are both there
		d.Asked = append(d.Asked, facts[i][rng.IntN(len(facts[i]))])
	}
	return d
}

func (d *documentsDrawn) shuffle(rng *rand.Rand) {
	rng.Shuffle(len(d.Documents), func(i, j int) { d.Documents[i], d.Documents[j] = d.Documents[j], d.Documents[i] })
}
