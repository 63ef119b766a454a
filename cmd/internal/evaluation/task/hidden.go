package task

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
)

// puzzle is what one sample hides in the haystack.
type puzzle struct {
	needles  []string
	question map[string]string // values of the question's and the answer's braces
	answers  []string
}

func passkey(c *Cell) ([]Sample, error) {
	return c.hidden(func(rng *rand.Rand) puzzle {
		key := number(rng)
		values := map[string]string{"key": key}
		return puzzle{needles: []string{filled(c.Form.Needle, values)}, question: map[string]string{}, answers: []string{key}}
	})
}

// cities are names that any tokenizer has words for.
var cities = []string{"London", "Paris", "Berlin", "Madrid", "Rome", "Vienna", "Moscow", "Tokyo", "Delhi", "Cairo", "Sydney", "Toronto", "Chicago", "Boston", "Dublin", "Lisbon"}

func needles(c *Cell) ([]Sample, error) {
	return c.hidden(func(rng *rand.Rand) (p puzzle) {
		var names []string
		for i, at := range rng.Perm(len(cities))[:min(c.Form.Needles, len(cities))] {
			name, key := cities[at], number(rng)
			p.needles = append(p.needles, filled(c.Form.needle(i), map[string]string{"name": name, "key": key}))
			p.answers, names = append(p.answers, key), append(names, name)
		}
		p.question = map[string]string{"name": names[0], "names": strings.Join(names, ", ")}
		return p
	})
}

func variables(c *Cell) ([]Sample, error) {
	return c.hidden(func(rng *rand.Rand) (p puzzle) {
		key := number(rng)
		values := map[string]string{"key": key}
		for i := range c.Form.Needles {
			values["previous"], values["name"] = values["name"], word(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 5)
			p.needles = append(p.needles, filled(c.Form.needle(i), values))
			p.answers = append(p.answers, values["name"])
		}
		p.question = map[string]string{"key": key}
		return p
	})
}

// hidden makes the samples of a task that hides needles in a haystack: the first at the depth,
// the others by equal steps between it and the end.
func (c *Cell) hidden(draw func(*rand.Rand) puzzle) ([]Sample, error) {
	units := sentences(c.Form.Haystack)
	first := draw(c.random(0, 0))
	n, err := c.fit(0, func(n int) Prompt { return c.asked(first, units, n, 0) })
	if err != nil {
		return nil, err
	}
	var list []Sample
	for _, depth := range c.Depths {
		for i := range c.Samples {
			p := draw(c.random(depth, i))
			list = append(list, Sample{Prompt: c.asked(p, units, n, depth), Depth: depth, Index: i, Answers: p.answers, Need: c.Form.Need})
		}
	}
	return list, nil
}

// asked is the haystack of n units with the needles in it, and the question.
func (c *Cell) asked(p puzzle, units []string, n int, depth float64) Prompt {
	var text strings.Builder
	at := 0
	for i, needle := range p.needles {
		share := depth + (1-depth)*float64(i)/float64(len(p.needles))
		for ; at < int(math.Round(share*float64(n))); at++ {
			text.WriteString(units[at%len(units)])
		}
		text.WriteString(needle)
	}
	for ; at < n; at++ {
		text.WriteString(units[at%len(units)])
	}
	return c.Form.prompt(text.String(), p.question)
}

// sentence is a sentence with the blanks behind it.
var sentence = regexp.MustCompile(`(?s).+?(?:[.!?]["')\]]*\s+|\n\s*\n|$)`)

// sentences are the units of a haystack, between which a needle may stand.
func sentences(text string) []string { return firstSentences(text, -1) }

// firstSentences are at most n of them, all for -1.
func firstSentences(text string, n int) []string {
	list := sentence.FindAllString(text, n)
	if len(list) > 0 && !strings.HasSuffix(list[len(list)-1], " ") && !strings.HasSuffix(list[len(list)-1], "\n") {
		list[len(list)-1] += " "
	}
	return list
}
