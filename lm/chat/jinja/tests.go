package jinja

import "math"

// unsupportedTests are those of Jinja that are refused where they are used.
var unsupportedTests = []string{"escaped", "filter", "test"}

type valueTest = func(m *machine, v any, given passed) bool

// newTests gives the tests of Jinja that are supported.
func newTests() map[string]valueTest {
	tests := map[string]valueTest{
		"defined":   isA("defined", func(v any) bool { return !is[undefined](v) }),
		"undefined": isA("undefined", is[undefined]),
		"none":      isA("none", func(v any) bool { return v == nil }),
		"boolean":   isA("boolean", is[bool]),
		"true":      isA("true", func(v any) bool { return v == any(true) }),
		"false":     isA("false", func(v any) bool { return v == any(false) }),
		"integer":   isA("integer", is[int64]),
		"float":     isA("float", is[float64]),
		"number":    isA("number", func(v any) bool { return is[bool](v) || is[int64](v) || is[float64](v) }),
		"string":    isA("string", func(v any) bool { return is[string](v) || is[markup](v) }),
		"mapping":   isA("mapping", is[*Dict]),
		"sequence":  isA("sequence", sequence),
		"iterable":  isA("iterable", func(v any) bool { return sequence(v) || is[view](v) || is[*iterator](v) }),
		"callable": isA("callable", func(v any) bool {
			return is[*function](v) || is[*macroValue](v) || is[*loopValue](v) || is[undefined](v)
		}),
		"odd":         remainder("odd", 1),
		"even":        remainder("even", 0),
		"divisibleby": divisible,
		"lower":       ofCase("islower"),
		"upper":       ofCase("isupper"),
		"sameas":      same,
		"in": func(m *machine, v any, given passed) bool {
			return m.contains(given.bind("in", 1, "seq")[0], v)
		},
	}
	for operator, names := range map[string][]string{
		"==": {"eq", "equalto"}, "!=": {"ne"}, "<": {"lt", "lessthan"}, "<=": {"le"}, ">": {"gt", "greaterthan"}, ">=": {"ge"},
	} {
		for _, name := range append(names, operator) {
			tests[name] = func(m *machine, v any, given passed) bool {
				return (&frame{machine: m}).compare(operator, v, given.bind(name, 1, "/other")[0])
			}
		}
	}
	return tests
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isA(name string, of func(any) bool) valueTest {
	return func(_ *machine, v any, given passed) bool {
		given.bind(name, 0)
		return of(v)
	}
}

func sequence(v any) bool {
	switch v.(type) {
	case string, markup, List, tuple, *Dict, span, undefined:
		return true
	}
	return false
}

func remainder(name string, want float64) valueTest {
	return func(m *machine, v any, given passed) bool {
		given.bind(name, 0)
		f, _, _, ok := number(m.arithmetic("%", v, int64(2)))
		return ok && f == want
	}
}

func divisible(m *machine, v any, given passed) bool {
	f, _, _, ok := number(m.arithmetic("%", v, given.bind("divisibleby", 1, "num")[0]))
	return ok && f == 0
}

func ofCase(method string) valueTest {
	return func(m *machine, v any, given passed) bool {
		given.bind(method, 0)
		return textMethods[method](m, m.str(v), passed{}).(bool)
	}
}

// same is known for the values that exist once.
func same(m *machine, v any, given passed) bool {
	other := given.bind("sameas", 1, "other")[0]
	if v == nil || other == nil {
		return v == other
	}
	a, okA := v.(bool)
	b, okB := other.(bool)
	if !okA && !okB {
		failf("sameas is supported for none, true and false only")
	}
	return okA && okB && a == b
}

// integer gives a whole number that something needs.
func (m *machine) integer(what string, v any) int64 {
	_, i, integer, _ := number(v)
	if !integer {
		failf("%s needs a whole number, and this is a %s", what, typeName(v))
	}
	return i
}

func (m *machine) integerOr(what string, v any, otherwise int64) int64 {
	if v == (absent{}) {
		return otherwise
	}
	return m.integer(what, v)
}

// text gives a text that something needs.
func (m *machine) text(what string, v any) string {
	s, ok := textOf(v)
	if !ok {
		failf("%s needs a text, and this is a %s", what, typeName(v))
	}
	return s
}

// wholeOf is a float without its fraction.
func wholeOf(f float64) (int64, bool) {
	if f != f || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}
