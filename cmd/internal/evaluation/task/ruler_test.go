package task

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

// golden is what the generator of RULER's authors made, and what it drew for it (testdata/make_ruler.py).
type golden struct {
	Essay []string // its sentences
	Tasks map[string]struct {
		Length, Tokens int
		Samples        []struct {
			Drawn   json.RawMessage
			Answers []string
			Prefix  string // of the answer
			Input   string // of one sample; of the others the digest
			SHA256  string
			Scores  []struct {
				Answer string
				Score  float64
			}
		}
	}
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	b, err := os.ReadFile("testdata/ruler.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// rulerForm is the form of RULER's authors.
func rulerForm(t *testing.T, name string) Form {
	t.Helper()
	b, err := RulerForm(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseForm(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func read[T any](t *testing.T, b []byte) (x T) {
	t.Helper()
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// drawnNeedles has the pieces of a haystack in short.
type drawnNeedles struct {
	needlesDrawn
	Sentences, Lines int
	Last             string // sentence of an essay, which is cut off
	Others           [][2]string
}

func (d drawnNeedles) book(g golden, f Form) book {
	switch {
	case d.Sentences > 0:
		for i := range d.Sentences - 1 {
			d.Pieces = append(d.Pieces, g.Essay[i%len(g.Essay)])
		}
		d.Pieces = append(d.Pieces, d.Last)
	case d.Lines > 0:
		d.Pieces = slices.Repeat([]string{f.Haystack}, d.Lines)
	default:
		for _, o := range d.Others {
			d.Pieces = append(d.Pieces, filled(f.Needle, map[string]string{"name": o[0], "key": o[1]}))
		}
	}
	return d.needlesDrawn.book(f)
}

// withExample has an answered example besides.
type withExample[T any] struct{ Drawn, Example T }

// bookOf is the text of what the authors' generator drew.
func bookOf(t *testing.T, g golden, name string, f Form, drawn []byte) (b book) {
	t.Helper()
	switch name {
	case "vt":
		d := read[withExample[chainsDrawn]](t, drawn)
		b = d.Drawn.book(f)
		b.example = f.example(d.Example.book(f)) + "\n\n"
	case "cwe":
		d := read[withExample[listDrawn]](t, drawn)
		b = d.Drawn.book(f)
		b.example = f.listExample(d.Example)
	case "fwe":
		b = read[codedDrawn](t, drawn).book(f)
	case "qa_1", "qa_2":
		b = read[documentsDrawn](t, drawn).book(f)
	default:
		b = read[drawnNeedles](t, drawn).book(g, f)
	}
	return b
}

// What RULER's generator drew gives RULER's text, in RULER's form, in all thirteen tasks.
func TestTextsOfRuler(t *testing.T) {
	g := readGolden(t)
	for _, of := range Tasks() {
		if !of.Ruler {
			continue
		}
		f, want := rulerForm(t, of.Name), g.Tasks[of.Name]
		if len(want.Samples) != 10 {
			t.Errorf("%s: %d samples, want 10", of.Name, len(want.Samples))
		}
		if f.Tokens != want.Tokens {
			t.Errorf("%s: an answer has %d tokens, want %d", of.Name, f.Tokens, want.Tokens)
		}
		c := Cell{Form: f}
		for i, w := range want.Samples {
			b := bookOf(t, g, of.Name, f, w.Drawn)
			p := c.prompt(b, 0)
			if w.Input != "" && p.Text != w.Input {
				t.Errorf("%s: the text is\n%q, want\n%q", of.Name, p.Text, w.Input)
			}
			if digest := fmt.Sprintf("%x", sha256.Sum256([]byte(p.Text))); digest != w.SHA256 {
				t.Errorf("%s, sample %d: another text", of.Name, i)
			}
			if p.Answer != w.Prefix {
				t.Errorf("%s: the answer begins with %q, want %q", of.Name, p.Answer, w.Prefix)
			}
			if !slices.Equal(b.asked[0].answers, w.Answers) {
				t.Errorf("%s, sample %d: the answers are %q, want %q", of.Name, i, b.asked[0].answers, w.Answers)
			}
		}
	}
}

// An answer has RULER's score: a right one, one in capitals, half of one, nearly one, and none.
func TestScoresOfRuler(t *testing.T) {
	g, different := readGolden(t), map[float64]bool{}
	for _, of := range Tasks() {
		for i, s := range g.Tasks[of.Name].Samples {
			for _, a := range s.Scores {
				score, right := of.Score(a.Answer, Sample{Answers: s.Answers})
				if math.Abs(score-a.Score) > 1e-4 || right != (a.Score == 1) { // RULER rounds
					t.Errorf("%s, sample %d: %q has %g, want %g of %q", of.Name, i, a.Answer, score, a.Score, s.Answers)
				}
				different[a.Score] = true
			}
		}
	}
	if len(different) < 4 {
		t.Errorf("the scores are all of %v: the test shows little", different)
	}
}

// Words come as often as in RULER: those of lists of common words, and coded ones.
func TestCountsOfRuler(t *testing.T) {
	g := readGolden(t)
	counts := func(list []string) (n []int) {
		each := map[string]int{}
		for _, w := range list {
			each[w]++
		}
		for _, k := range each {
			n = append(n, k)
		}
		slices.Sort(n)
		return n
	}
	for _, s := range g.Tasks["cwe"].Samples {
		d := read[struct {
			withExample[listDrawn]
			Words int
		}](t, s.Drawn)
		c := Cell{Form: rulerForm(t, "cwe"), Length: g.Tasks["cwe"].Length, task: "cwe"}
		list, example := c.repeats()
		list.words = d.Words
		ours, theirs := drawList(c.random(0, 0), list, 10), drawList(c.random(0, 1), example, 10)
		if !slices.Equal(counts(ours.List), counts(d.Drawn.List)) || !slices.Equal(counts(theirs.List), counts(d.Example.List)) {
			t.Errorf("%d words come otherwise: %v, want %v", d.Words, counts(ours.List), counts(d.Drawn.List))
		}
	}
	// Below 4,096 tokens the generator has other numbers in its source.
	short := Cell{Form: rulerForm(t, "cwe"), Length: 4095}
	if list, example := short.repeats(); list != (repeats{0, 6, 1}) || example != (repeats{20, 3, 1}) {
		t.Errorf("in a short list words come %+v, in its example %+v", list, example)
	}
	for _, s := range g.Tasks["fwe"].Samples {
		d := read[struct {
			codedDrawn
			Words, Vocabulary int
			Alpha             float64
		}](t, s.Drawn)
		f := rulerForm(t, "fwe")
		c := Cell{Form: f, Length: g.Tasks["fwe"].Length, task: "fwe"}
		ours := drawCoded(c.random(0, 0), d.Words, d.Vocabulary, f)
		if f.Alpha != d.Alpha || c.vocabulary() != d.Vocabulary || !slices.Equal(counts(ours.List), counts(d.List)) {
			t.Errorf("of %d words %d come otherwise: %v, want %v", d.Words, c.vocabulary(), counts(ours.List), counts(d.List))
		}
	}
}
