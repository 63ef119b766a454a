package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON reads a value for a template as Python's json.loads does: objects keep
// the order of their keys, and whole numbers are integers. It gives nil, a bool, an
// int64, a float64, a string, a List or a *Dict. Bytes that are not UTF-8 and halves
// of surrogate pairs are refused.
func FromJSON(data []byte) (any, error) {
	if err := checkTexts(data); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := fromJSON(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	return v, nil
}

// checkTexts refuses what encoding/json would read as U+FFFD: bytes that are not
// UTF-8, which Python refuses as well, and halves of surrogate pairs, which no
// tokenizer can take.
func checkTexts(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("the JSON is not UTF-8")
	}
	escape := func(at int) rune {
		if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(data[at+2:at+6]), 16, 16)
		return rune(n)
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if r := escape(i); utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, escape(i+6)) == utf8.RuneError {
				return fmt.Errorf("the JSON has the escape %s, which is half of a character", data[i:i+6])
			}
			i += 6
		}
		i++
	}
	return nil
}

func fromJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the JSON is more than %d deep, which is not supported", maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		return fromNumber(token.String())
	case json.Delim:
		if token == '[' {
			items := List{}
			for d.More() {
				v, err := fromJSON(d, depth+1)
				if err != nil {
					return nil, err
				}
				items = append(items, v)
			}
			_, err = d.Token()
			return items, err
		}
		object := &Dict{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := fromJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			object.set(key, v)
		}
		_, err = d.Token()
		return object, err
	}
	return token, nil // nil, bool and string
}

func fromNumber(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the number %s does not fit into 64 bits, which is not supported", shown(text))
		}
		return i, nil
	}
	f, _ := strconv.ParseFloat(text, 64) // too large ones are infinite, as in Python
	return f, nil
}

// writer writes JSON as Python's json.dumps does.
type writer struct {
	*machine
	strings.Builder
	ascii, sorted bool
	lines         bool // each item has a line
	indent        string
	comma, colon  string
}

// toJSON is the filter tojson of transformers: it escapes nothing for HTML.
func toJSON(m *machine, v any, given passed) any {
	a := given.bind("tojson", 0, "ensure_ascii", "indent", "separators", "sort_keys")
	w := &writer{machine: m, comma: ", ", colon: ": "}
	w.ascii = a[0] != absent{} && truth(a[0])
	w.sorted = a[3] != absent{} && truth(a[3])
	if a[1] != (absent{}) && a[1] != nil {
		w.lines, w.comma = true, ","
		if text, ok := a[1].(string); ok {
			w.indent = text
		} else {
			w.indent = m.repeat(" ", m.integer("indent", a[1])).(string)
		}
	}
	if a[2] != (absent{}) && a[2] != nil {
		both := m.iterate(a[2])
		if len(both) != 2 {
			failf("tojson's separators are two texts")
		}
		w.comma, w.colon = m.text("separators", both[0]), m.text("separators", both[1])
	}
	w.value(v, 0)
	return m.made(w.String())
}

func (w *writer) value(v any, depth int) {
	w.enter()
	defer w.leave()
	w.spend(1)
	switch v := v.(type) {
	case nil:
		w.WriteString("null")
	case bool:
		w.WriteString(strconv.FormatBool(v))
	case int64:
		w.WriteString(strconv.FormatInt(v, 10))
	case float64:
		w.WriteString(jsonFloat(v))
	case string:
		w.text(v)
	case markup:
		w.text(string(v))
	case List:
		w.all("[", "]", len(v), depth, func(i int) { w.value(v[i], depth+1) })
	case tuple:
		w.all("[", "]", len(v), depth, func(i int) { w.value(v[i], depth+1) })
	case *Dict:
		items := v.items()
		if w.sorted {
			items = slices.Clone(items)
			slices.SortStableFunc(items, func(a, b any) int { return w.order(a.(tuple)[0], b.(tuple)[0]) })
		}
		w.all("{", "}", len(items), depth, func(i int) {
			item := items[i].(tuple)
			w.key(item[0])
			w.WriteString(w.colon)
			w.value(item[1], depth+1)
		})
	default:
		failf("a %s has no JSON", typeName(v))
	}
}

func (w *writer) all(begin, end string, n, depth int, one func(i int)) {
	w.WriteString(begin)
	line := func(depth int) {
		if w.lines {
			w.WriteString("\n")
			for range depth {
				w.WriteString(w.made(w.indent))
			}
		}
	}
	for i := range n {
		if i > 0 {
			w.WriteString(w.made(w.comma))
		}
		line(depth + 1)
		one(i)
	}
	if n > 0 {
		line(depth)
	}
	w.WriteString(end)
}

func (w *writer) key(k any) {
	switch k := k.(type) {
	case string:
		w.text(k)
	case float64:
		w.text(jsonFloat(k))
	case bool:
		w.text(strconv.FormatBool(k))
	case nil:
		w.text("null")
	default:
		w.text(w.str(k))
	}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f != f:
		return "NaN"
	}
	return floatText(f)
}

func (w *writer) text(text string) {
	w.made(text)
	w.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case r == '\n':
			w.WriteString(`\n`)
		case r == '\r':
			w.WriteString(`\r`)
		case r == '\t':
			w.WriteString(`\t`)
		case r == '\b':
			w.WriteString(`\b`)
		case r == '\f':
			w.WriteString(`\f`)
		case r >= 0x10000 && w.ascii:
			r -= 0x10000
			fmt.Fprintf(w, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r < 0x20 || w.ascii && r > '~':
			fmt.Fprintf(w, `\u%04x`, r)
		default:
			w.WriteRune(r)
		}
	}
	w.WriteByte('"')
}
