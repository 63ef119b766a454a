package jinja

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// getter gives an attribute of a value by its path, as "function.name" or 0. A nil
// attribute is the value itself. What is not there is otherwise, if that is given.
func (m *machine) getter(attribute, otherwise any) func(v any) any {
	var path []any
	switch attribute := attribute.(type) {
	case nil:
	case int64:
		path = []any{attribute}
	case string:
		for _, part := range strings.Split(attribute, ".") {
			if pythonInteger.MatchString(part) && part[0] != '-' && part[0] != '+' && !strings.Contains(part, "_") {
				n, err := strconv.ParseInt(part, 10, 64)
				if err != nil {
					tooLarge()
				}
				path = append(path, n)
			} else {
				path = append(path, part)
			}
		}
	default:
		failf("a %s is not the name of an attribute", typeName(attribute))
	}
	return func(v any) any {
		m.spend(1 + len(path))
		for _, key := range path {
			v = m.item(v, key)
			if is[undefined](v) && otherwise != nil {
				v = otherwise
			}
		}
		return v
	}
}

// mapFilter takes an attribute of each value, or applies a filter to it.
func mapFilter(m *machine, v any, given passed) any {
	if !truth(v) {
		return &iterator{}
	}
	var of func(any) any
	if len(given.values) == 0 {
		a := passed{names: given.names, keywords: given.keywords}.bind("map", 1, "attribute", "default")
		if a[0] == nil {
			failf("map needs an attribute or a filter")
		}
		of = m.getter(a[0], optional(a[1], nil))
	} else {
		name := m.text("map", given.values[0])
		apply, ok := m.filters[name]
		if !ok {
			failf("the filter %q is not supported", short.Name(name))
		}
		rest := passed{values: given.values[1:], names: given.names, keywords: given.keywords}
		of = func(v any) any { return apply(m, v, rest) }
	}
	var mapped []any
	for _, one := range m.iterate(v) {
		mapped = append(mapped, of(one))
	}
	return &iterator{mapped}
}

// selecting keeps the values, or those whose attribute, that pass a test.
func selecting(name string, keep, byAttribute bool) valueFilter {
	return func(m *machine, v any, given passed) any {
		if !truth(v) {
			return &iterator{}
		}
		values := given.values
		get := m.getter(nil, nil)
		if byAttribute {
			if len(values) == 0 {
				failf("%s needs an attribute", name)
			}
			get = m.getter(values[0], nil)
			values = values[1:]
		}
		passes := truth
		if len(values) > 0 {
			which := m.text(name, values[0])
			apply, ok := m.tests[which]
			if !ok {
				failf("the test %q is not supported", short.Name(which))
			}
			rest := passed{values: values[1:], names: given.names, keywords: given.keywords}
			passes = func(v any) bool { return apply(m, v, rest) }
		} else if len(given.names) > 0 {
			failf("%s without a test has no argument named %s", name, given.names[0])
		}
		var kept []any
		for _, one := range m.iterate(v) {
			if passes(get(one)) == keep {
				kept = append(kept, one)
			}
		}
		return &iterator{kept}
	}
}

// folded is what values are ordered and compared by: texts in small letters, if
// their case does not count.
func folded(v any, caseCounts bool) any {
	if s, ok := textOf(v); ok && !caseCounts {
		return lower(s)
	}
	return v
}

// sorted orders values by keys. Python compares no single value with itself.
func (m *machine) sorted(items []any, key func(any) any, descending bool) []any {
	type pair struct{ key, value any }
	pairs := make([]pair, len(items))
	for i, one := range items {
		pairs[i] = pair{key(one), one}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		if descending {
			return m.order(b.key, a.key)
		}
		return m.order(a.key, b.key)
	})
	ordered := make([]any, len(items))
	for i, p := range pairs {
		ordered[i] = p.value
	}
	return ordered
}

func sortFilter(m *machine, v any, given passed) any {
	a := given.bind("sort", 0, "reverse", "case_sensitive", "attribute")
	if s, ok := optional(a[2], nil).(string); ok && strings.Contains(s, ",") {
		failf("sort by several attributes is not supported")
	}
	get := m.getter(optional(a[2], nil), nil)
	caseCounts := truth(optional(a[1], false))
	return List(m.sorted(m.iterate(v), func(v any) any { return folded(get(v), caseCounts) }, truth(optional(a[0], false))))
}

func dictSort(m *machine, v any, given passed) any {
	a := given.bind("dictsort", 0, "case_sensitive", "by", "reverse")
	at := 0
	switch optional(a[1], "key") {
	case "key":
	case "value":
		at = 1
	default:
		failf("dictsort sorts by key or by value")
	}
	d, ok := v.(*Dict)
	if !ok {
		failf("dictsort needs a dict, and this is a %s", typeName(v))
	}
	caseCounts := truth(optional(a[0], false))
	return List(m.sorted(d.items(), func(v any) any { return folded(v.(tuple)[at], caseCounts) }, truth(optional(a[2], false))))
}

func unique(m *machine, v any, given passed) any {
	a := given.bind("unique", 0, "case_sensitive", "attribute")
	get := m.getter(optional(a[1], nil), nil)
	caseCounts := truth(optional(a[0], false))
	seen := &Dict{}
	var kept []any
	for _, one := range m.iterate(v) {
		key := folded(get(one), caseCounts)
		if _, ok := seen.get(key); !ok {
			seen.set(key, nil)
			kept = append(kept, one)
		}
	}
	return &iterator{kept}
}

// extreme is the first of the largest or smallest values.
func extreme(name string, sign int) valueFilter {
	return func(m *machine, v any, given passed) any {
		a := given.bind(name, 0, "case_sensitive", "attribute")
		get := m.getter(optional(a[1], nil), nil)
		caseCounts := truth(optional(a[0], false))
		items := m.iterate(v)
		if len(items) == 0 {
			return undefined{name}
		}
		best := items[0]
		for _, one := range items[1:] {
			if sign*m.order(folded(get(one), caseCounts), folded(get(best), caseCounts)) > 0 {
				best = one
			}
		}
		return best
	}
}
