package jinja

import (
	"fmt"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// maxRange is the most that range gives, as in Jinja's sandbox.
const maxRange = 100_000

// newGlobals gives the functions that templates find beside the variables.
func newGlobals() map[string]any {
	globals := map[string]any{
		"range": &function{"range", func(m *machine, given passed) any {
			a := given.bind("range", 1, "/start", "/stop", "/step")
			s := span{0, m.integer("range", a[0]), m.integerOr("range", a[2], 1)}
			if a[1] != (absent{}) {
				s.from, s.to = s.to, m.integer("range", a[1])
			}
			for _, n := range []int64{s.from, s.to, s.step} {
				if n > 1<<53 || n < -1<<53 {
					tooLarge()
				}
			}
			if s.step == 0 {
				failf("the step of a range is 0")
			}
			if s.count() > maxRange {
				failf("a range has more than %d numbers", maxRange)
			}
			return s
		}},
		"dict":      &function{"dict", func(m *machine, given passed) any { return newDict("dict", given) }},
		"namespace": &function{"namespace", func(m *machine, given passed) any { return &namespace{newDict("namespace", given)} }},
		"raise_exception": &function{"raise_exception", func(m *machine, given passed) any {
			panic(failure{fmt.Errorf("%w: %s", ErrRaised, m.str(given.bind("raise_exception", 1, "message")[0]))})
		}},
		"strftime_now": &function{"strftime_now", func(m *machine, given passed) any {
			return strftime(m.now, m.text("strftime_now", given.bind("strftime_now", 1, "format")[0]))
		}},
	}
	for _, name := range []string{"lipsum", "cycler", "joiner"} {
		globals[name] = &function{name, func(*machine, passed) any {
			failf("the function %s is not supported", name)
			return nil
		}}
	}
	return globals
}

func newDict(what string, given passed) *Dict {
	d := &Dict{}
	switch len(given.values) {
	case 0:
	case 1:
		from, ok := given.values[0].(*Dict)
		if !ok {
			failf("%s of a %s is not supported", what, typeName(given.values[0]))
		}
		for i, k := range from.keys {
			d.set(k, from.values[i])
		}
	default:
		failf("%s takes one value, and %d are given", what, len(given.values))
	}
	for i, name := range given.names {
		d.set(name, given.keywords[i])
	}
	return d
}

// directives of strftime in the C locale, by Go's layouts.
var directives = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04",
	'p': "PM", 'S': "05", 'y': "06", 'Y': "2006", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04",
	'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'h': "Jan", 'r': "03:04:05 PM",
}

// strftime writes a time as the C function does.
func strftime(now time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		bare := i < len(format) && format[i] == '-' // no zeros before the number
		if bare {
			i++
		}
		if i == len(format) {
			failf("the time format %q ends inside a directive", short.Name(format))
		}
		layout, ok := directives[format[i]]
		switch {
		case format[i] == '%' && !bare:
			b.WriteByte('%')
		case format[i] == 'f' && !bare:
			fmt.Fprintf(&b, "%06d", now.Nanosecond()/1000)
		case !ok || bare && !strings.Contains("dHIjmMSy", format[i:i+1]):
			failf("the time directive %%%c is not supported", format[i])
		case bare:
			number := strings.TrimLeft(now.Format(layout), "0")
			if number == "" {
				number = "0"
			}
			b.WriteString(number)
		default:
			b.WriteString(now.Format(layout))
		}
	}
	return b.String()
}
