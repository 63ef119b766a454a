package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Print gives a value as {{ value }} prints it. Values are those that Template.Render
// takes.
func Print(value any) (text string, err error) {
	defer recoverTo(&err)
	m := &machine{}
	return m.str(m.given(value)), nil
}

// str is Python's str(v), which is what {{ v }} prints.
func (m *machine) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case undefined:
		return ""
	}
	return m.repr(v)
}

// repr is Python's repr(v).
func (m *machine) repr(v any) string {
	m.enter()
	defer m.leave()
	m.spend(1)
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case string:
		return m.made(quoted(v))
	case undefined:
		return "Undefined"
	case List:
		return m.reprAll("[", v, "]")
	case tuple:
		if len(v) == 1 {
			return "(" + m.repr(v[0]) + ",)"
		}
		return m.reprAll("(", v, ")")
	case *Dict:
		parts := make([]string, v.Len())
		for i := range v.keys {
			parts[i] = m.repr(v.keys[i]) + ": " + m.repr(v.values[i])
		}
		return m.made("{" + strings.Join(parts, ", ") + "}")
	case view:
		return v.kind + "(" + m.repr(v.of) + ")"
	case span:
		if v.step == 1 {
			return fmt.Sprintf("range(%d, %d)", v.from, v.to)
		}
		return fmt.Sprintf("range(%d, %d, %d)", v.from, v.to, v.step)
	}
	failf("printing a %s is not supported", typeName(v))
	return ""
}

func (m *machine) reprAll(begin string, items []any, end string) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = m.repr(item)
	}
	return m.made(begin + strings.Join(parts, ", ") + end)
}

// floatText is Python's repr of a float: the shortest digits, with an exponent
// below 1e-4 and from 1e16 on.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f != f:
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// quoted is Python's repr of a text.
func quoted(text string) string {
	quote := '\''
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range text {
		switch {
		case r == quote || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// IsSpace reports whether Python's str.strip trims a character: what unicode.IsSpace
// has, and U+001C to U+001F.
func IsSpace(r rune) bool {
	return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
}
