package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// attribute is v.name: an attribute of Python's type first, then a key.
func (m *machine) attribute(v any, name string) any {
	if found, ok := m.member(v, name); ok {
		return found
	}
	if d, ok := v.(*Dict); ok {
		if found, ok := d.get(name); ok {
			return found
		}
	}
	return undefined{name}
}

// item is v[key]: a key or a place first, then an attribute.
func (m *machine) item(v, key any) any {
	at := int64(-1)
	_, whole, integer, _ := number(key)
	place := func(n int64) bool {
		if at = whole; at < 0 {
			at += n
		}
		return integer && at >= 0 && at < n
	}
	switch v := v.(type) {
	case undefined:
		failf("%s is not defined, and it has no items", v.name)
	case *Dict:
		if found, ok := v.get(key); ok {
			return found
		}
	case List:
		if place(int64(len(v))) {
			return v[at]
		}
	case tuple:
		if place(int64(len(v))) {
			return v[at]
		}
	case span:
		if place(v.count()) {
			return v.from + at*v.step
		}
	case string:
		if integer {
			if runes := m.runes(v); place(int64(len(runes))) {
				return string(runes[at])
			}
		}
	case markup:
		if found, ok := m.item(string(v), key).(string); ok && integer {
			return markup(found)
		}
	}
	if name, ok := key.(string); ok {
		if found, ok := m.member(v, name); ok {
			return found
		}
		return undefined{name}
	}
	return undefined{"the item"}
}

func (m *machine) runes(text string) []rune {
	m.made(text)
	return []rune(text)
}

// slice is v[from:to:step], where nil is what is not given.
func (m *machine) slice(v, from, to, step any) any {
	bound := func(v any) *int64 {
		_, i, integer, _ := number(v)
		switch {
		case v == nil:
			return nil
		case !integer:
			failf("a %s cannot be the bound of a slice", typeName(v))
		}
		return &i
	}
	var items []any
	switch v := v.(type) {
	case string:
		runes := m.runes(v)
		var b strings.Builder
		for _, i := range places(int64(len(runes)), bound(from), bound(to), bound(step)) {
			b.WriteRune(runes[i])
		}
		return m.made(b.String())
	case markup:
		return markup(m.slice(string(v), from, to, step).(string))
	case List:
		items = v
	case tuple:
		items = v
	default:
		failf("a slice of a %s is not possible", typeName(v))
	}
	chosen := places(int64(len(items)), bound(from), bound(to), bound(step))
	m.spend(len(chosen))
	result := make([]any, len(chosen))
	for i, at := range chosen {
		result[i] = items[at]
	}
	if _, ok := v.(tuple); ok {
		return tuple(result)
	}
	return List(result)
}

// places are those of n items that a slice chooses.
func places(n int64, from, to, step *int64) []int64 {
	by := int64(1)
	if step != nil {
		by = *step
	}
	if by == 0 {
		failf("the step of a slice is 0")
	}
	first, end, low, high := int64(0), n, int64(0), n
	if by < 0 {
		first, end, low, high = n-1, -1, -1, n-1
	}
	clip := func(given *int64, otherwise int64) int64 {
		if given == nil {
			return otherwise
		}
		at := *given
		if at < 0 {
			at += n
		}
		return min(max(at, low), high)
	}
	var chosen []int64
	at, end := clip(from, first), clip(to, end)
	for by > 0 && at < end || by < 0 && at > end {
		chosen = append(chosen, at)
		if by > n || by < -n {
			break
		}
		at += by
	}
	return chosen
}

func (s span) count() int64 {
	if s.step > 0 && s.from < s.to {
		return (s.to-s.from-1)/s.step + 1
	}
	if s.step < 0 && s.from > s.to {
		return (s.from-s.to-1)/-s.step + 1
	}
	return 0
}

// iterate gives the values that a for over v sees.
func (m *machine) iterate(v any) []any {
	var items []any
	switch v := v.(type) {
	case List:
		items = v
	case tuple:
		items = v
	case *Dict:
		items = v.keys
	case view:
		items = v.of
	case undefined:
	case *iterator:
		items, v.rest = v.rest, nil
	case string:
		items = make([]any, 0, utf8.RuneCountInString(v))
		for _, r := range m.runes(v) {
			items = append(items, string(r))
		}
	case span:
		for i := range v.count() {
			items = append(items, v.from+i*v.step)
		}
	default:
		failf("a %s has no items to loop over", typeName(v))
	}
	m.spend(len(items))
	return slices.Clip(items)
}

// length is Python's len(v).
func (m *machine) length(v any) int64 {
	switch v := v.(type) {
	case string:
		m.made(v)
		return int64(utf8.RuneCountInString(v))
	case markup:
		return int64(utf8.RuneCountInString(string(v)))
	case List:
		return int64(len(v))
	case tuple:
		return int64(len(v))
	case *Dict:
		return int64(v.Len())
	case view:
		return int64(len(v.of))
	case span:
		return v.count()
	case undefined:
		return 0
	}
	failf("a %s has no length", typeName(v))
	return 0
}
