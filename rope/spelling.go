package rope

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

// What people type into specs: other spellings that are read, and shapes that are
// not, each with what was probably meant.

// ParseTokens reads a number of tokens: an integer in digits, or one with k or M
// for 1024 and 1024² tokens, in which contexts are counted: 8k is 8192 and 128K is
// 131072.
func ParseTokens(text string) (int64, error) {
	digits, scale := text, int64(1)
	if n := len(text); n > 0 {
		switch text[n-1] {
		case 'k', 'K':
			digits, scale = text[:n-1], 1<<10
		case 'm', 'M':
			digits, scale = text[:n-1], 1<<20
		}
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, errors.New("is not a number of tokens: write it in digits, or in units of 1024 as in 8k")
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > maxWhole/scale {
		return 0, errors.New("is too large: a number of tokens has at most 53 bits")
	}
	return n * scale, nil
}

// counts says whether the parameter is a number of tokens.
func (p Param) counts() bool { return p.Counts || p.Kind == Tokens }

// takes says what values the parameter takes, as errors name it.
func (p Param) takes() string {
	switch {
	case p.Kind == Tokens:
		return "a number of tokens such as 8192 or 8k (8 times 1024), or a share of the context such as L/3"
	case p.Counts:
		return "a number of tokens such as 8192 or 8k (8 times 1024)"
	case p.Kind == Word:
		return strings.Join(p.Words, " or ")
	case p.Kind == Real:
		return "a number such as 4 or 0.5"
	}
	return p.Kind.String()
}

// read reads a value as it is typed, which is a little more than what JSON has.
func (p Param) read(text string) (Value, error) {
	if p.counts() {
		if n, err := ParseTokens(text); err == nil {
			return Value{kind: p.Kind, number: float64(n)}, nil
		}
	}
	if p.Kind == Switch {
		text = strings.ToLower(text)
	}
	if i := slices.IndexFunc(p.Words, func(w string) bool { return suggest.Same(w, text) }); i >= 0 {
		text = p.Words[i]
	}
	v, err := parseValue(p.Kind, text)
	if err != nil && (p.Kind == Real || p.Kind == Whole) && !p.Counts {
		if _, suffixed := ParseTokens(text); suffixed == nil {
			err = errors.New("is not a number: k and M are only for numbers of tokens, so write all digits")
		}
	}
	if err == nil && (p.Kind == Whole || p.Kind == Tokens) && strings.ContainsAny(text, ".eE") {
		err = errors.New("must be an integer, written in digits") // JSON may have 8192.0
	}
	return v, err
}

// otherNames are what methods are called elsewhere.
var otherNames = map[string]string{
	"pi": "linear", "position-interpolation": "linear", "ntk-aware": "ntk", "su": "longrope", "llama-3": "llama3",
	"dca": "dual-chunk", "streaming-llm": "first-keys", "streamingllm": "first-keys", "attention-sinks": "first-keys", "sinks": "first-keys", "swa": "sliding-window", "window": "sliding-window",
}

// meant says which of an axis' methods a name may be, as suggest.Hint does.
func meant(name string, names []string) string {
	for other, ours := range otherNames {
		if suggest.Same(other, name) && slices.Contains(names, ours) {
			return fmt.Sprintf(" (did you mean %q?)", short.Name(ours))
		}
	}
	return suggest.Hint(name, names)
}

// spelled returns the method's key that is meant, key itself if it has none such.
func (m Method) spelled(key string) string {
	for _, k := range m.keys() {
		if suggest.Same(k, key) {
			return k
		}
	}
	return key
}

// shape says what to write in the place of an item without "=", the first one or
// a later one.
func (m Method) shape(item string, first bool) string {
	item = strings.TrimSpace(item)
	key, value, colon := strings.Cut(item, ":")
	number := item != "" && strings.Trim(item, "0123456789.kKmM") == ""
	switch {
	case len(m.Params) == 0:
		return fmt.Sprintf(": the method takes no keys, write %s alone", m.Name)
	case item == "":
		return "; write " + m.Name + " alone, or KEY=VALUE after the colon, with one comma between keys"
	case colon && slices.Contains(m.keys(), m.spelled(key)):
		return fmt.Sprintf("; write %s=%s", m.spelled(key), value)
	case number && first:
		return fmt.Sprintf("; write for example %s=%s", m.Params[0].Name, item)
	case number:
		return "; numbers are written without commas, for example 8192 or 8k"
	case slices.Contains(m.keys(), m.spelled(item)):
		return fmt.Sprintf("; write a value behind it, %s=…", m.spelled(item))
	}
	return "; keys: " + strings.Join(m.keys(), ", ")
}

// misshapen refuses a text that does not begin with a name.
func misshapen(axis Axis, text string) error {
	name, _, _ := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	end := strings.IndexFunc(name, func(r rune) bool { return strings.ContainsRune("= ,\t", r) })
	switch {
	case name == "":
		return fmt.Errorf("%v: %q is not a method; write name or name:key=value,key=value", axis, short.Name(text))
	case strings.HasPrefix(name, "-"):
		return fmt.Errorf("%v: expected a method, not the flag %s; write name or name:key=value,key=value", axis, name)
	case strings.HasPrefix(name, "{"):
		return fmt.Errorf("%v: this is a dictionary, which --rope-parameters takes", axis)
	case strings.Trim(name, "0123456789.kKmM") == "":
		for m := range Methods() {
			if m.Axis == axis && len(m.Params) > 0 && (m.Params[0].Stretches || m.Params[0].counts()) {
				return fmt.Errorf("%v: %q is not a method; write name:key=value, for example %s:%s=%s", axis, short.Name(text), m.Name, m.Params[0].Name, text)
			}
		}
	}
	if end < 0 {
		return nil
	}
	rest := strings.Trim(text[strings.Index(text, name)+end:], " ,:\t")
	word := name[:end]
	if m, err := Lookup(axis, word); err == nil && len(m.Params) > 0 {
		if strings.HasPrefix(rest, "=") {
			rest = m.Params[0].Name + rest
		}
		return fmt.Errorf("%v: put a colon between a method and its keys; write %s:%s", axis, m.Name, strings.ReplaceAll(rest, " ", ","))
	}
	for m := range Methods() {
		if key := m.spelled(word); m.Axis == axis && slices.Contains(m.keys(), key) {
			return fmt.Errorf("%v: %q is not a method; write name:key=value, for example %s:%s", axis, short.Name(text), m.Name, strings.TrimSpace(text))
		}
	}
	return nil
}
