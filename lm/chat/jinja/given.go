package jinja

import (
	"maps"
	"slices"
	"unicode/utf8"
)

// given makes a value of a template of one that a caller gives.
func (m *machine) given(v any) any {
	m.enter()
	defer m.leave()
	m.spend(1)
	switch v := v.(type) {
	case nil, bool, int64, float64:
		return v
	case int:
		return int64(v)
	case string:
		return m.givenText(v)
	case List:
		return m.givenList(v)
	case []any:
		return m.givenList(v)
	case *Dict:
		if v == nil {
			return nil
		}
		d := &Dict{}
		for i, k := range v.keys {
			d.set(m.given(k), m.given(v.values[i]))
		}
		return d
	case map[string]any:
		d := &Dict{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			d.set(m.givenText(k), m.given(v[k]))
		}
		return d
	}
	failf("a variable is or holds a %T, which templates do not know: give what FromJSON makes of its JSON", v)
	return nil
}

func (m *machine) givenText(s string) string {
	if !utf8.ValidString(s) {
		failf("a variable is or holds a text that is not UTF-8")
	}
	return m.made(s)
}

func (m *machine) givenList(items []any) List {
	l := make(List, len(items))
	for i, one := range items {
		l[i] = m.given(one)
	}
	return l
}
