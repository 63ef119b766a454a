package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

// Task asks for something in a long text.
type Task struct {
	Name  string
	About string // what a model must do
	Ruler bool   // one of RULER's, which draw the places of what they hide themselves: Cell.Depths is not for them
	text  text   // what the haystack is
	score score
	make  func(*Cell) ([]Sample, error)
}

// text says where a task's haystack comes from.
type text int

const (
	sentencesText text = iota // the form's, which a user may replace
	essayText                 // made here, unless there is one in the form
	formText                  // the form's, as it is
	ownText                   // the task makes it
)

// score says when an answer counts.
type score int

const (
	enough score = iota // as many of the answers as it takes, to the letter: 1, else 0
	all                 // the share of the answers that are there, whatever their case
	part                // 1 if any of the answers is there, whatever its case
)

// Tasks are all of them, in the order in which they are shown.
func Tasks() []Task {
	return []Task{
		{"passkey", "find a number in a long text", false, sentencesText, enough, passkey},
		{"needles", "find two of four numbers", false, sentencesText, enough, needles},
		{"kv", "find a value by its key", false, ownText, enough, pairs},
		{"variables", "follow assignments and name all variables with one value", false, sentencesText, enough, variables},
		{"niah_single_1", "find a number in noise", true, formText, all, niah{line, words, numbers}.make},
		{"niah_single_2", "find a number in prose", true, essayText, all, niah{prose, words, numbers}.make},
		{"niah_single_3", "find a UUID in prose", true, essayText, all, niah{prose, words, uuids}.make},
		{"niah_multikey_1", "find one of several numbers in prose", true, essayText, all, niah{prose, words, numbers}.make},
		{"niah_multikey_2", "find a number among nothing but numbers", true, ownText, all, niah{others, words, numbers}.make},
		{"niah_multikey_3", "find a UUID among nothing but UUIDs", true, ownText, all, niah{others, uuids, uuids}.make},
		{"niah_multivalue", "find all numbers of a key", true, essayText, all, niah{prose, words, numbers}.make},
		{"niah_multiquery", "find the numbers of several keys", true, essayText, all, niah{prose, words, numbers}.make},
		{"vt", "follow assignments in noise", true, formText, all, chains},
		{"cwe", "name the most common words of a list", true, ownText, all, common},
		{"fwe", "name the most frequent coded words", true, ownText, all, coded},
		{"qa_1", "answer from one of many documents", true, ownText, part, single},
		{"qa_2", "answer from two of many documents", true, ownText, part, double},
	}
}

// Ruler stands for all tasks of RULER where tasks are named.
const Ruler = "ruler"

// Names are the names of all tasks.
func Names() (names []string) {
	for _, t := range Tasks() {
		names = append(names, t.Name)
	}
	return names
}

// Expand puts RULER's tasks in the place of their common name, and names each task once.
func Expand(names []string) (list []string) {
	add := func(name string) {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	for _, name := range names {
		if name != Ruler {
			add(name)
			continue
		}
		for _, t := range Tasks() {
			if t.Ruler {
				add(t.Name)
			}
		}
	}
	return list
}

// Of is the task of a name. others are names that a caller has besides.
func Of(name string, others ...string) (Task, error) {
	for _, t := range Tasks() {
		if t.Name == name {
			return t, nil
		}
	}
	known := append(Names(), others...)
	return Task{}, fmt.Errorf("unknown task %q%s; tasks: %s", short.Name(name), suggest.Hint(name, known), strings.Join(known, ", "))
}

// Cell is what samples are wanted of: one task at one length.
type Cell struct {
	Form    Form
	Length  int       // tokens that prompt and answer may have together
	Depths  []float64 // where in the text an answer stands, from 0 to 1; of no use to RULER's tasks
	Samples int       // of each depth
	Seed    uint64
	Count   func(Prompt) (int, error) // tokens of a prompt

	task string // its name
}

// Prompt is what a model is asked.
type Prompt struct {
	System string // of the conversation; may be empty
	Text   string // what the user says
	Answer string // what the model's answer begins with; may be empty
	Cuts   []int  // where in Text each document begins, in bytes, and where the last one ends; nil for a text that is one
}

// Sample is one question with its answers.
type Sample struct {
	Prompt
	Depth   float64 // where the answer stands; 0 where a task draws the places
	Index   int     // among the samples of the depth
	Group   int     // the number of the text, from 1, where samples of a text belong together; else 0
	Answers []string
	Need    int // how many of the answers it takes
}

// Samples are those of a cell. Neighbours have much in common, as far as the task allows.
func (t Task) Samples(c Cell) ([]Sample, error) {
	c.task = t.Name
	return t.make(&c)
}

// Score is how much of what was asked for an answer has, from 0 to 1, and whether that is enough.
func (t Task) Score(answer string, s Sample) (score float64, right bool) {
	n := 0
	for _, a := range s.Answers {
		if strings.Contains(answer, a) || t.score != enough && strings.Contains(strings.ToLower(answer), strings.ToLower(a)) {
			n++
		}
	}
	switch t.score {
	case all:
		return float64(n) / float64(len(s.Answers)), n == len(s.Answers)
	case part:
		right = n > 0
	default:
		right = n >= s.Need
	}
	if right {
		score = 1
	}
	return score, right
}

// Asked is how many answers a score counts: a share of ten answers says more than one right answer does.
func (t Task) Asked(answers []string) int {
	if t.score == all {
		return len(answers)
	}
	return 1
}

// Form is the task's own form, changed by what a user gave: a form in its place, a text for the haystack.
func (t Task) Form(given *Form, haystack string) (f Form, err error) {
	if given != nil {
		f = *given
	} else {
		b, err := BuiltinForm(t.Name)
		if err != nil {
			return f, err
		}
		if f, err = ParseForm(b); err != nil {
			return f, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	if haystack != "" && (t.text == essayText || t.text == sentencesText && f.Haystack != "") {
		f.Haystack = haystack
	}
	if (t.text == sentencesText || t.text == formText) && len(sentences(f.Haystack)) == 0 {
		return f, fmt.Errorf("%s: haystack: expected a text to hide needles in", t.Name)
	}
	return f, nil
}

// random draws for one sample of a task: every variant of a model gets the same.
func (c *Cell) random(depth float64, sample int) *rand.Rand {
	h := c.Seed
	for _, b := range []byte(fmt.Sprintf("%s %d %g %d", c.task, c.Length, depth, sample)) {
		h = (h ^ uint64(b)) * 1099511628211 // FNV-1a
	}
	return rand.New(rand.NewPCG(c.Seed, h))
}

// slack is how many tokens two samples of a cell may differ by: not all numbers have as many.
const slack = 8

// fit is the largest number of units, least or more, with which prompt and answer have at most the cell's tokens.
func (c *Cell) fit(least int, asked func(n int) Prompt) (int, error) {
	room := c.Length - c.Form.Tokens - slack
	var failed error
	long := func(n int) bool {
		tokens, err := c.Count(asked(n))
		if err != nil {
			failed = err
		}
		return err != nil || tokens > room
	}
	most := max(least, 1)
	for !long(most) {
		most *= 2
	}
	n := least + sort.Search(most-least, func(i int) bool { return long(least + i) }) - 1
	switch {
	case failed != nil:
		return 0, failed
	case n < least:
		return 0, fmt.Errorf("%s: %d tokens are too few for the prompt; give larger --lengths", c.task, c.Length)
	}
	return n, nil
}

// number draws five digits, word as many letters of an alphabet as asked for.
func number(rng *rand.Rand) string { return fmt.Sprint(10000 + rng.IntN(90000)) }

func word(rng *rand.Rand, alphabet string, letters int) string {
	b := make([]byte, letters)
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}
