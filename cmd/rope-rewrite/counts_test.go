package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// counted is a sentence of a page whose groups are counts.
type counted struct {
	page, sentence string
	counts         []int
}

// countable is a count of what grows with the code: each must be in the list of TestCounts, or is better left out.
var countable = regexp.MustCompile(`(?i)\b(\d[\d,]*|` + strings.Join(numerals, "|") + `)( of \d[\d,]*)?( [a-z']+)? ` +
	`(scalings|position maps|damaged models|damages|look-alikes|graphs that|exports that)\b`)

// The pages count what the code has.
func TestCounts(t *testing.T) {
	scalings := 0
	for m := range rope.Methods() {
		if m.Axis == rope.ScalingAxis {
			scalings++
		}
	}
	ruler := len(task.Expand([]string{task.Ruler}))
	// What make coverage wrote: layers, all, whole exports, all, architectures, routes.
	table := `(\d+) of (\d+) attention layers are verified equal, all of them in (\d+) of (\d+) exports \((\d+) rotary architectures, (\d+) routes\)`
	c := numbers(t, "results/architectures.md", table)[0]
	list := []counted{
		{"../README.md", `lists all: (\d+) scalings`, []int{scalings}},
		{"../README.md", `([\d,]+) of ([\d,]+) attention layers in exports of (\d+) architectures by (\d+) routes`, []int{c[0], c[1], c[4], c[5]}},
		{"results.md", `([\d,]+) of ([\d,]+) attention layers of ([\d,]+) exports \((\d+) architectures, (\d+) routes\)`, []int{c[0], c[1], c[3], c[4], c[5]}},
		{"results/coverage.md", `([\d,]+) of ([\d,]+) rotary attention layers of ([\d,]+) small exports that ONNX Runtime runs \((\d+) architectures, (\d+) routes\)`, []int{c[0], c[1], c[3], c[4], c[5]}},
		{"choosing.md", `RULER's (\w+) tasks, \[below`, []int{ruler}},
		{"choosing.md", `Where all (\w+) are asked`, []int{ruler}},
		{"evidence.md", `## (\w+) tasks`, []int{ruler}},
		{"reference.md", `ruler stands for all (\w+)\.`, []int{ruler}},
		{"reference.md", `ruler is the (\w+) from`, []int{ruler}},
	}
	for _, c := range list {
		for _, got := range numbers(t, c.page, c.sentence) {
			if !slices.Equal(got, c.counts) {
				t.Errorf("%s: %s says %d, and there are %d", c.page, c.sentence, got, c.counts)
			}
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(pages, "../../README.md") {
		page, _ := filepath.Rel("../../docs", path)
		text := unbroken(t, page)
		for _, c := range list {
			if c.page == page {
				text = regexp.MustCompile(c.sentence).ReplaceAllString(text, "")
			}
		}
		for _, found := range countable.FindAllString(text, -1) {
			t.Errorf("%s counts %q, which no test does: add it to the list here, or leave the number out", page, found)
		}
	}
}

// numbers are the groups of each place of a page where a sentence stands.
func numbers(t *testing.T, page, sentence string) (list [][]int) {
	t.Helper()
	for _, found := range regexp.MustCompile(sentence).FindAllStringSubmatch(unbroken(t, page), -1) {
		var groups []int
		for _, text := range found[1:] {
			n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
			if err != nil {
				n = slices.Index(numerals, strings.ToLower(text))
			}
			groups = append(groups, n)
		}
		list = append(list, groups)
	}
	if len(list) == 0 {
		t.Fatalf("%s has no sentence %s", page, sentence)
	}
	return list
}

// unbroken is a page of docs/ with its line breaks as blanks.
func unbroken(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

// numerals are numbers in words, each at its place.
var numerals = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
	"thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"}
