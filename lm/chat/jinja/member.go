package jinja

import "strings"

// Attributes that Python's types have and that are not supported: reading one is an
// error, and not an undefined value.
var unsupportedMembers = map[string]string{
	"str":       "casefold center encode expandtabs format_map isidentifier isprintable istitle maketrans rindex translate",
	"dict":      "clear fromkeys pop popitem setdefault update",
	"list":      "append clear extend insert pop remove reverse sort",
	"int":       "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes",
	"bool":      "as_integer_ratio bit_count bit_length conjugate denominator from_bytes imag numerator real to_bytes",
	"float":     "as_integer_ratio conjugate fromhex hex imag is_integer real",
	"range":     "count index start step stop",
	"dict_keys": "isdisjoint mapping", "dict_items": "isdisjoint mapping", "dict_values": "mapping",
	"generator": "close gi_code gi_frame gi_running gi_suspended gi_yieldfrom send throw",
}

// member gives an attribute of a value's type: a method, or what a loop and a
// namespace have.
func (m *machine) member(v any, name string) (any, bool) {
	if u, ok := v.(undefined); ok {
		failf("%s is not defined, and it has no attribute %s", u.name, name)
	}
	if strings.HasPrefix(name, "__") {
		failf("the attribute %s is not supported", name)
	}
	method := func(call func(m *machine, given passed) any, ok bool) (any, bool) {
		return &function{name, call}, ok
	}
	switch v := v.(type) {
	case *loopValue:
		return v.attribute(m, name), true
	case *namespace:
		return v.values.get(name)
	case string:
		if call, ok := textMethods[name]; ok {
			return method(func(m *machine, given passed) any { m.made(v); return call(m, v, given) }, true)
		}
	case *Dict:
		if call, ok := dictMethods[name]; ok {
			return method(func(_ *machine, given passed) any { return call(v, given) }, true)
		}
	case List:
		if call, ok := listMethods[name]; ok {
			return method(func(m *machine, given passed) any { return call(m, v, given) }, true)
		}
	case tuple:
		if call, ok := listMethods[name]; ok && name != "copy" {
			return method(func(m *machine, given passed) any { return call(m, List(v), given) }, true)
		}
	case markup, *function, *macroValue:
		failf("the attribute %s of a %s is not supported", name, typeName(v))
	}
	for _, other := range strings.Fields(unsupportedMembers[typeName(v)]) {
		if name == other {
			failf("the method %s of a %s is not supported", name, typeName(v))
		}
	}
	return nil, false
}

var dictMethods = map[string]func(d *Dict, given passed) any{
	"keys": func(d *Dict, given passed) any {
		given.bind("keys", 0)
		return view{"dict_keys", d.keys}
	},
	"values": func(d *Dict, given passed) any {
		given.bind("values", 0)
		return view{"dict_values", d.values}
	},
	"items": func(d *Dict, given passed) any {
		given.bind("items", 0)
		return view{"dict_items", d.items()}
	},
	"copy": func(d *Dict, given passed) any {
		given.bind("copy", 0)
		return d
	},
	"get": func(d *Dict, given passed) any {
		a := given.bind("get", 1, "/key", "/default")
		if _, ok := keyOf(a[0]); !ok && !is[undefined](a[0]) {
			failf("get with a %s is not supported", typeName(a[0]))
		}
		if found, ok := d.get(a[0]); ok {
			return found
		}
		if a[1] == (absent{}) {
			return nil
		}
		return a[1]
	},
}

var listMethods = map[string]func(m *machine, l List, given passed) any{
	"index": func(m *machine, l List, given passed) any {
		a := given.bind("index", 1, "/value")
		for i, one := range l {
			if m.equal(one, a[0]) {
				return int64(i)
			}
		}
		failf("the value is not in the list")
		return nil
	},
	"count": func(m *machine, l List, given passed) any {
		a := given.bind("count", 1, "/value")
		n := int64(0)
		for _, one := range l {
			if m.equal(one, a[0]) {
				n++
			}
		}
		return n
	},
	"copy": func(m *machine, l List, given passed) any {
		given.bind("copy", 0)
		return l
	},
}
