package jinja

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type valueFilter = func(m *machine, v any, given passed) any

// unsupportedFilters are those of Jinja that are refused where they are used:
// templates have them in branches that few conversations reach.
var unsupportedFilters = strings.Fields("attr batch center filesizeformat forceescape groupby pprint random slice " +
	"striptags truncate urlencode urlize wordcount wordwrap xmlattr")

// newFilters gives the filters of Jinja that are supported.
func newFilters() map[string]valueFilter {
	return map[string]valueFilter{
		"abs": func(m *machine, v any, given passed) any {
			given.bind("abs", 0)
			if f, _, _, ok := number(v); ok && f < 0 {
				return negate("-", v)
			}
			return negate("+", v)
		},
		"capitalize": onText("capitalize", capitalize),
		"count":      lengthFilter,
		"d":          defaultFilter,
		"default":    defaultFilter,
		"dictsort":   dictSort,
		"e":          escapeFilter,
		"escape":     escapeFilter,
		"first":      first,
		"float":      floatFilter,
		"format": func(m *machine, v any, given passed) any {
			if len(given.names) > 0 {
				failf("format with names is not supported")
			}
			return m.percent(m.plainText("format", v), given.values)
		},
		"indent": indent,
		"int":    intFilter,
		"items": func(m *machine, v any, given passed) any {
			given.bind("items", 0)
			switch v := v.(type) {
			case undefined:
				return &iterator{}
			case *Dict:
				return &iterator{v.items()}
			}
			failf("items needs a dict, and this is a %s", typeName(v))
			return nil
		},
		"join":   joinFilter,
		"last":   last,
		"length": lengthFilter,
		"list": func(m *machine, v any, given passed) any {
			given.bind("list", 0)
			return List(m.iterate(v))
		},
		"lower":      onText("lower", lower),
		"map":        mapFilter,
		"max":        extreme("max", 1),
		"min":        extreme("min", -1),
		"reject":     selecting("reject", false, false),
		"rejectattr": selecting("rejectattr", false, true),
		"replace": func(m *machine, v any, given passed) any {
			a := given.bind("replace", 2, "old", "new", "count")
			if a[2] == nil {
				a[2] = absent{}
			}
			return m.replace(m.str(v), m.str(a[0]), m.str(a[1]), m.integerOr("replace", a[2], -1))
		},
		"reverse": func(m *machine, v any, given passed) any {
			given.bind("reverse", 0)
			if s, ok := v.(string); ok {
				return string(reversed(m.runes(s)))
			}
			turned := reversed(m.iterate(v))
			if is[*iterator](v) {
				return List(turned)
			}
			return &iterator{turned}
		},
		"round": roundFilter,
		"safe": func(m *machine, v any, given passed) any {
			given.bind("safe", 0)
			return markup(m.str(v))
		},
		"select":     selecting("select", true, false),
		"selectattr": selecting("selectattr", true, true),
		"sort":       sortFilter,
		"string": func(m *machine, v any, given passed) any {
			given.bind("string", 0)
			if safe, ok := v.(markup); ok {
				return safe
			}
			return m.made(m.str(v))
		},
		"sum":    sum,
		"title":  onText("title", titleWords),
		"tojson": toJSON,
		"trim": func(m *machine, v any, given passed) any {
			a := given.bind("trim", 0, "chars")
			if safe, ok := v.(markup); ok {
				return markup(m.trimmed(strings.TrimFunc, string(safe), a[0]))
			}
			return m.made(m.trimmed(strings.TrimFunc, m.str(v), a[0]))
		},
		"unique": unique,
		"upper":  onText("upper", upper),
	}
}

// plainText is a text that is not marked as safe.
func (m *machine) plainText(what string, v any) string {
	if is[markup](v) {
		failf("%s of a text marked as safe is not supported", what)
	}
	return m.text(what, v)
}

func escapeFilter(m *machine, v any, given passed) any {
	given.bind("escape", 0)
	if is[markup](v) {
		return v
	}
	return markup(m.made(string(escaped(m.str(v)))))
}

func onText(name string, of func(string) string) valueFilter {
	return func(m *machine, v any, given passed) any {
		given.bind(name, 0)
		if safe, ok := v.(markup); ok && name != "title" {
			return markup(of(m.made(string(safe))))
		}
		return of(m.made(m.str(v)))
	}
}

// titleWords is the filter title, which has other words than the method.
func titleWords(s string) string {
	noSigma(s)
	var b strings.Builder
	begin := true
	for _, r := range s {
		letter := string(r)
		switch {
		case IsSpace(r) || strings.ContainsRune("-({[<", r):
			b.WriteString(letter)
			begin = true
		case begin:
			b.WriteString(upper(letter))
			begin = false
		default:
			b.WriteString(lower(letter))
		}
	}
	return b.String()
}

func lengthFilter(m *machine, v any, given passed) any {
	given.bind("length", 0)
	return m.length(v)
}

func defaultFilter(m *machine, v any, given passed) any {
	a := given.bind("default", 0, "default_value", "boolean")
	_, missing := v.(undefined)
	if missing || a[1] != (absent{}) && truth(a[1]) && !truth(v) {
		if a[0] == (absent{}) {
			return ""
		}
		return a[0]
	}
	return v
}

// optional is an argument, or what stands for it.
func optional(v, otherwise any) any {
	if v == (absent{}) {
		return otherwise
	}
	return v
}

var (
	pythonInteger = regexp.MustCompile(`^[-+]?[0-9]+(_[0-9]+)*$`)
	pythonFloat   = regexp.MustCompile(`^(?i:[-+]?(([0-9]+(_[0-9]+)*)?\.?([0-9]+(_[0-9]+)*)?(e[-+]?[0-9]+(_[0-9]+)*)?|inf|infinity|nan))$`)
)

// intFilter reads a whole number, or the whole part of another.
func intFilter(m *machine, v any, given passed) any {
	a := given.bind("int", 0, "default", "base")
	if base := m.integerOr("int", a[1], 10); base != 10 {
		failf("int with another base than 10 is not supported")
	}
	f, i, integer, ok := number(v)
	switch {
	case integer:
		return i
	case !ok:
		s, isText := v.(string)
		if v != nil && !isText {
			if is[undefined](v) || is[markup](v) {
				failf("int of a %s is not supported", typeName(v))
			}
			return optional(a[0], int64(0))
		}
		s = strings.TrimFunc(s, IsSpace)
		if pythonInteger.MatchString(s) {
			i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
			if err != nil {
				tooLarge()
			}
			return i
		}
		if f, ok = parseFloat(s); !ok {
			return optional(a[0], int64(0))
		}
	}
	if f != f || math.IsInf(f, 0) {
		if _, ok := v.(float64); ok && f == f {
			failf("int of an infinite number is not supported")
		}
		return optional(a[0], int64(0))
	}
	whole, ok := wholeOf(f)
	if !ok {
		tooLarge()
	}
	return whole
}

// parseFloat is Python's float of a text.
func parseFloat(s string) (float64, bool) {
	if !ascii(s) {
		failf("a number of digits beyond ASCII is not supported")
	}
	if !pythonFloat.MatchString(s) || !strings.ContainsAny(s, "0123456789nN") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, err == nil || math.IsInf(f, 0)
}

func floatFilter(m *machine, v any, given passed) any {
	a := given.bind("float", 0, "default")
	if f, _, _, ok := number(v); ok {
		return f
	}
	if s, ok := v.(string); ok {
		if f, ok := parseFloat(strings.TrimFunc(s, IsSpace)); ok {
			return f
		}
	} else if is[undefined](v) || is[markup](v) {
		failf("float of a %s is not supported", typeName(v))
	}
	return optional(a[0], 0.0)
}

// roundFilter rounds the exact decimal value, half to even.
func roundFilter(m *machine, v any, given passed) any {
	a := given.bind("round", 0, "precision", "method")
	precision := m.integerOr("round", a[0], 0)
	f, _, integer, ok := number(v)
	switch method := optional(a[1], "common"); {
	case !ok || precision < 0 || precision > 300 || f != f || math.IsInf(f, 0):
		failf("round of a %s, or with such a precision, is not supported", typeName(v))
	case method == "common" && integer:
		return negate("+", v)
	case method == "common":
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(precision), 64), 64)
		return f
	case precision != 0 || math.Abs(f) > 1<<53:
		failf("round with a method and a precision is not supported")
	case method == "ceil":
		return math.Ceil(f) + 0 // no negative zero, as Python's is an integer first
	case method == "floor":
		return math.Floor(f) + 0
	default:
		failf("round has no such method")
	}
	return nil
}

// indent puts blanks before the lines, but the first.
func indent(m *machine, v any, given passed) any {
	a := given.bind("indent", 0, "width", "first", "blank")
	with, ok := optional(a[0], int64(4)).(string)
	if !ok {
		with = m.repeat(" ", m.integer("indent", optional(a[0], int64(4)))).(string)
	}
	all := lines(m.plainText("indent", v) + "\n")
	m.spend(len(all) * (1 + len(with)/16))
	for i, line := range all {
		if i > 0 && (line != "" || truth(optional(a[2], false))) || i == 0 && truth(optional(a[1], false)) {
			all[i] = with + line
		}
	}
	return m.joined(all, "\n")
}

func joinFilter(m *machine, v any, given passed) any {
	a := given.bind("join", 0, "d", "attribute")
	var parts []string
	get := m.getter(optional(a[1], nil), nil)
	for _, one := range m.iterate(v) {
		part := m.str(get(one))
		m.spend(len(part) / 16)
		parts = append(parts, part)
	}
	return m.joined(parts, m.str(optional(a[0], "")))
}

func first(m *machine, v any, given passed) any {
	given.bind("first", 0)
	if it, ok := v.(*iterator); ok {
		if len(it.rest) == 0 {
			return undefined{"the first item"}
		}
		one := it.rest[0]
		it.rest = it.rest[1:]
		return one
	}
	if s, ok := v.(string); ok && s != "" {
		_, n := utf8.DecodeRuneInString(s)
		return s[:n]
	}
	if items := m.iterate(v); len(items) > 0 {
		return items[0]
	}
	return undefined{"the first item"}
}

func last(m *machine, v any, given passed) any {
	given.bind("last", 0)
	switch v.(type) {
	case *iterator, undefined:
		failf("last of a %s is not supported", typeName(v))
	}
	if items := m.iterate(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefined{"the last item"}
}

func sum(m *machine, v any, given passed) any {
	a := given.bind("sum", 0, "attribute", "start")
	total := optional(a[1], int64(0))
	if _, ok := textOf(total); ok {
		failf("sum of texts is not possible")
	}
	get := m.getter(optional(a[0], nil), nil)
	items := m.iterate(v)
	if slices.ContainsFunc(items, is[float64]) && len(items) > 2 {
		failf("sum of more than two fractions is not supported, as versions of Python differ")
	}
	for _, one := range items {
		total = m.arithmetic("+", total, get(one))
	}
	return total
}
