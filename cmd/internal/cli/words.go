package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// choices are the words that flags beside the methods' take first.
var choices = []struct {
	flag  string
	words []string
	all   string // of what is expected
}{
	{"documents", []string{"input", "separator"}, "input, input:NAME or separator:TOKEN"},
	{"kv", []string{"growing", "fixed"}, "growing or fixed:capacity=N"},
	{"logits", []string{"all", "last"}, "all, last or last:input=NAME"},
	{"base", []string{"original", "carried"}, "original or carried"},
	{"cache", []string{"rotated", "raw"}, "rotated or raw"},
	{"precision", []string{"exact", "fast"}, "exact or fast"},
	{"target", targets(), strings.Join(targets(), " or ")},
	{"definition", []string{"function", "none"}, "function or none"},
	{"weights", []string{"copy", "link"}, "copy or link"},
}

// otherFlag says, as an error, to which other flag a value belongs; nil if to none.
func otherFlag(flag, text string) error {
	name, _, _ := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	for m := range rope.Methods() {
		if m.Axis.String() == flag && suggest.Same(m.Name, name) {
			return nil // words of other flags may be called the same
		}
	}
	for _, c := range choices {
		if c.flag != flag && slices.ContainsFunc(c.words, func(w string) bool { return suggest.Same(w, name) }) {
			return fmt.Errorf("%s is a value of --%s; write --%s %s", name, c.flag, c.flag, text)
		}
	}
	for m := range rope.Methods() {
		if m.Axis.String() != flag && suggest.Same(m.Name, name) {
			return fmt.Errorf("%s is a method of --%v; write --%v %s", m.Name, m.Axis, m.Axis, text)
		}
	}
	return nil
}

// Choose returns which of a flag's words the first part of text is, before a colon.
func Choose(flag, text string) (string, error) {
	name, _, _ := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	for _, c := range choices {
		if c.flag != flag {
			continue
		}
		for _, w := range c.words {
			if suggest.Same(w, name) {
				return w, nil
			}
		}
		if err := otherFlag(flag, text); err != nil {
			return "", err
		}
		return "", fmt.Errorf("%q: %s was expected%s", text, c.all, suggest.Hint(name, c.words))
	}
	return "", fmt.Errorf("--%s has no words", flag)
}

// targets lists what the flag of that name takes.
func targets() (list []string) {
	for _, t := range rewrite.Targets() {
		list = append(list, string(t))
	}
	return list
}
