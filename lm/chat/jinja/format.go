package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// format is Python's str.format for fields without a form of their own: {}, {0},
// {name} and {!s}.
func (m *machine) format(s string, given passed) string {
	var b strings.Builder
	next := 0 // the place of the next {}, or -1 once places were given
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			at = len(s)
		}
		b.WriteString(s[:at])
		if s = s[at:]; s == "" {
			break
		}
		if len(s) > 1 && s[1] == s[0] {
			b.WriteByte(s[0])
			s = s[2:]
			continue
		}
		end := strings.IndexByte(s, '}')
		if s[0] == '}' || end < 0 {
			failf("the text of format has a single %c", s[0])
		}
		b.WriteString(m.made(m.str(m.field(strings.TrimSuffix(s[1:end], "!s"), given, &next))))
		s = s[end+1:]
	}
	return m.made(b.String())
}

// field gives what a field of format stands for.
func (m *machine) field(field string, given passed, next *int) any {
	place, err := strconv.Atoi(field)
	switch {
	case strings.ContainsAny(field, "{[.:!+-_ "):
		failf("the field {%s} of format is not supported", field)
	case field == "":
		if place = *next; place < 0 {
			failf("format has fields with a place and fields without one")
		}
		*next++
	case err == nil:
		if *next > 0 {
			failf("format has fields with a place and fields without one")
		}
		*next = -1
	default:
		for i, name := range given.names {
			if name == field {
				return given.keywords[i]
			}
		}
		failf("format has no argument named %s", field)
	}
	if place >= len(given.values) {
		failf("format has a field number %d, and %d arguments", place+1, len(given.values))
	}
	return given.values[place]
}

// percent is Python's format % values for %s, %d, %c and %%.
func (m *machine) percent(format string, values []any) string {
	var b strings.Builder
	used := 0
	take := func() any {
		if used == len(values) {
			failf("the format %q needs more than %d values", short.Name(format), len(values))
		}
		used++
		return values[used-1]
	}
	for rest := format; rest != ""; {
		text, behind, found := strings.Cut(rest, "%")
		b.WriteString(text)
		if !found {
			break
		}
		directive, size := utf8.DecodeRuneInString(behind)
		switch directive {
		case '%':
			b.WriteByte('%')
		case 's':
			b.WriteString(m.made(m.str(take())))
		case 'd':
			b.WriteString(strconv.FormatInt(m.wholePart(take()), 10))
		case 'c':
			b.WriteString(m.letter(take()))
		default:
			failf("the directive %%%s of a format is not supported", behind[:size])
		}
		rest = behind[size:]
	}
	if used < len(values) {
		failf("the format %q uses %d of %d values", short.Name(format), used, len(values))
	}
	return m.made(b.String())
}

func (m *machine) wholePart(v any) int64 {
	f, i, integer, ok := number(v)
	if ok && !integer {
		if i, ok = wholeOf(f); !ok {
			tooLarge()
		}
	}
	if !ok {
		failf("%%d needs a number, and this is a %s", typeName(v))
	}
	return i
}

// letter is the character of a number, or a text of one.
func (m *machine) letter(v any) string {
	if s, ok := textOf(v); ok {
		if utf8.RuneCountInString(s) != 1 {
			failf("%%c needs one character, and this is a text of another length")
		}
		return s
	}
	i := m.integer("%c", v)
	if i < 0 || i > utf8.MaxRune || !utf8.ValidRune(rune(i)) {
		failf("%%c of %d names no character", i)
	}
	return string(rune(i))
}
