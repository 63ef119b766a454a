package evaluation

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

func passkey(c *cell) ([]Trial, error) {
	return c.hidden("passkey", func(rng *rand.Rand) puzzle {
		key := number(rng)
		values := map[string]string{"key": key}
		return puzzle{needles: []string{filled(c.form.Needle, values)}, question: map[string]string{}, answers: []string{key}}
	})
}

// cities are names that any tokenizer has words for.
var cities = []string{"London", "Paris", "Berlin", "Madrid", "Rome", "Vienna", "Moscow", "Tokyo", "Delhi", "Cairo", "Sydney", "Toronto", "Chicago", "Boston", "Dublin", "Lisbon"}

func needles(c *cell) ([]Trial, error) {
	return c.hidden("needles", func(rng *rand.Rand) (p puzzle) {
		var names []string
		for i, at := range rng.Perm(len(cities))[:min(c.form.Needles, len(cities))] {
			name, key := cities[at], number(rng)
			text := c.form.Next
			if i == 0 {
				text = c.form.Needle
			}
			p.needles = append(p.needles, filled(text, map[string]string{"name": name, "key": key}))
			p.answers, names = append(p.answers, key), append(names, name)
		}
		p.question = map[string]string{"name": names[0], "names": strings.Join(names, ", ")}
		return p
	})
}

func variables(c *cell) ([]Trial, error) {
	return c.hidden("variables", func(rng *rand.Rand) (p puzzle) {
		key := number(rng)
		values := map[string]string{"key": key}
		for i := range c.form.Needles {
			values["previous"], values["name"] = values["name"], word(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 5)
			text := c.form.Next
			if i == 0 {
				text = c.form.Needle
			}
			p.needles = append(p.needles, filled(text, values))
			p.answers = append(p.answers, values["name"])
		}
		p.question = map[string]string{"key": key}
		return p
	})
}

// hidden makes the trials of a task that hides needles in a haystack: the first at the depth,
// the others by equal steps between it and the end.
func (c *cell) hidden(task string, draw func(*rand.Rand) puzzle) ([]Trial, error) {
	units := sentences(c.form.Haystack)
	first := draw(c.random(task, 0, 0))
	n, err := c.fit(task, func(n int) (string, string, string) {
		return c.asked(first, units, n, 0)
	})
	if err != nil {
		return nil, err
	}
	var list []Trial
	for _, depth := range c.depths {
		for i := range c.samples {
			p := draw(c.random(task, depth, i))
			tokens, err := c.tokens(c.asked(p, units, n, depth))
			if err != nil {
				return nil, err
			}
			list = append(list, Trial{
				Task: task, Length: c.length, Depth: depth, Index: i, Tokens: tokens,
				Answers: p.answers, Need: c.form.Need, Most: c.form.Tokens,
			})
		}
	}
	return list, nil
}

// asked is the haystack of n units with the needles in it, the question, and what the answer
// begins with.
func (c *cell) asked(p puzzle, units []string, n int, depth float64) (haystack, question, answer string) {
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
	return text.String(), filled(c.form.Question, p.question), filled(c.form.Answer, p.question)
}

// sentence is a sentence with the blanks behind it.
var sentence = regexp.MustCompile(`(?s).+?(?:[.!?]["')\]]*\s+|\n\s*\n|$)`)

// sentences are the units of a haystack, between which a needle may stand.
func sentences(text string) []string {
	list := sentence.FindAllString(text, -1)
	if len(list) > 0 && !strings.HasSuffix(list[len(list)-1], " ") && !strings.HasSuffix(list[len(list)-1], "\n") {
		list[len(list)-1] += " "
	}
	return list
}
