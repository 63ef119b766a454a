package jinja

import "strings"

func splitMethod(name string, fromRight bool) func(*machine, string, passed) any {
	return func(m *machine, s string, given passed) any {
		a := given.bind(name, 0, "sep", "maxsplit")
		most := int(max(min(m.integerOr(name, a[1], -1), int64(len(s))), -1))
		var parts []string
		switch {
		case a[0] == nil || a[0] == absent{}:
			if most < 0 {
				parts = strings.FieldsFunc(s, IsSpace)
			} else if fromRight {
				parts = fieldsFromRight(s, most)
			} else {
				parts = fields(s, most)
			}
		default:
			sep := m.text(name, a[0])
			notEmpty(sep)
			if most < 0 || !fromRight {
				n := most + 1
				if most < 0 {
					n = -1
				}
				parts = strings.SplitN(s, sep, n)
			} else {
				parts = splitFromRight(s, sep, most)
			}
		}
		m.made(s)
		m.spend(len(parts))
		return texts(parts)
	}
}

// fields splits at blanks, at most n times; the rest keeps the blanks at its end.
func fields(s string, n int) []string {
	var parts []string
	s = strings.TrimLeftFunc(s, IsSpace)
	for ; n > 0 && s != ""; n-- {
		end := strings.IndexFunc(s, IsSpace)
		if end < 0 {
			break
		}
		parts = append(parts, s[:end])
		s = strings.TrimLeftFunc(s[end:], IsSpace)
	}
	if s != "" {
		parts = append(parts, s)
	}
	return parts
}

func fieldsFromRight(s string, n int) []string {
	var parts []string
	s = strings.TrimRightFunc(s, IsSpace)
	for ; n > 0 && s != ""; n-- {
		cut := strings.TrimRightFunc(s, func(r rune) bool { return !IsSpace(r) })
		if cut == "" {
			break
		}
		parts = append(parts, s[len(cut):])
		s = strings.TrimRightFunc(cut, IsSpace)
	}
	if s != "" {
		parts = append(parts, s)
	}
	return reversed(parts)
}

func splitFromRight(s, sep string, n int) []string {
	var parts []string
	for ; n > 0; n-- {
		at := strings.LastIndex(s, sep)
		if at < 0 {
			break
		}
		parts = append(parts, s[at+len(sep):])
		s = s[:at]
	}
	return reversed(append(parts, s))
}

func reversed[T any](items []T) []T {
	turned := make([]T, len(items))
	for i, item := range items {
		turned[len(items)-1-i] = item
	}
	return turned
}

// lines splits as Python's splitlines: at more than line feeds, and without an
// empty line at the end.
func lines(s string) []string {
	var found []string
	start := 0
	for i, r := range s {
		if i < start {
			continue // the line feed of a carriage return
		}
		size := 0
		switch {
		case r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
			size = 2
		case r >= '\n' && r <= '\r', r >= 0x1c && r <= 0x1e:
			size = 1
		case r == 0x85:
			size = 2
		case r == 0x2028 || r == 0x2029:
			size = 3
		default:
			continue
		}
		found = append(found, s[start:i])
		start = i + size
	}
	if start < len(s) {
		found = append(found, s[start:])
	}
	return found
}
