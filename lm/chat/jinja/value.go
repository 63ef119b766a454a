package jinja

import (
	"math"
	"slices"
	"strings"
)

// Values of templates are Go's nil (None), bool, int64, float64 and string, and
// the types below. Lists, tuples and dictionaries are never changed while a
// template is rendered: the sandbox of transformers forbids it, too.
type (
	// List is a list of Python: what FromJSON makes of an array.
	List  []any
	tuple []any
	// undefined is the value of a name, an attribute or a key that does not exist.
	undefined struct{ name string }
	// markup is a text that was marked as safe. Python's would escape what it is
	// joined with, so almost nothing may be done with it here but printing.
	markup string
	// iterator gives its values once, as Python's generators do.
	iterator struct{ rest []any }
	// span is what range gives.
	span struct{ from, to, step int64 }
	// view is what a dictionary's keys, values and items give.
	view struct {
		kind string
		of   List
	}
	namespace struct{ values *Dict }
)

// Dict is a dictionary of Python, in the order in which its keys were added: what
// FromJSON makes of an object. The zero value is empty and ready to use.
type Dict struct {
	// Within a template keys are numbers, bools and nil, too.
	keys   []any
	values []any
	index  map[any]int
}

// keyOf gives what equal keys share: 1, 1.0 and True are one key in Python.
func keyOf(k any) (any, bool) {
	switch k := k.(type) {
	case nil, string, int64:
		return k, true
	case bool:
		return toInt(k), true
	case markup:
		return string(k), true
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k), true
		}
		return k, k == k
	}
	return nil, false
}

// Set adds or changes a value; a changed one keeps its place. Values are those that
// Template.Render takes.
func (d *Dict) Set(key string, value any) { d.set(key, value) }

// Get returns the value of a key, and whether there is one.
func (d *Dict) Get(key string) (any, bool) { return d.get(key) }

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// MapTexts gives a copy of a value of FromJSON in which change was applied to each
// text, and to the keys of each *Dict.
func MapTexts(value any, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case List:
		l := make(List, len(v))
		for i, one := range v {
			l[i] = MapTexts(one, change)
		}
		return l
	case *Dict:
		d := &Dict{}
		for i, key := range v.keys {
			d.set(MapTexts(key, change), MapTexts(v.values[i], change))
		}
		return d
	}
	return value
}

func (d *Dict) set(key, value any) {
	k, ok := keyOf(key)
	if !ok {
		failf("a %s as the key of a dictionary is not supported", typeName(key))
	}
	if i, ok := d.index[k]; ok {
		d.values[i] = value
		return
	}
	if d.index == nil {
		d.index = map[any]int{}
	}
	d.index[k] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

func (d *Dict) get(key any) (any, bool) {
	k, ok := keyOf(key)
	if !ok {
		return nil, false
	}
	i, ok := d.index[k]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

func (d *Dict) items() List {
	items := make(List, len(d.keys))
	for i := range d.keys {
		items[i] = tuple{d.keys[i], d.values[i]}
	}
	return items
}

func toInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// typeName is Python's, for errors.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "text marked as safe"
	case List:
		return "list"
	case tuple:
		return "tuple"
	case *Dict:
		return "dict"
	case undefined:
		return "undefined value"
	case *iterator:
		return "generator"
	case span:
		return "range"
	case view:
		return v.kind
	case *namespace:
		return "namespace"
	}
	return "function"
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case List:
		return len(v) > 0
	case tuple:
		return len(v) > 0
	case *Dict:
		return v.Len() > 0
	case span:
		return v.count() > 0
	case view:
		return len(v.of) > 0
	}
	return true
}

// number gives a number as a float; integer says whether it is an integer, with
// its value.
func number(v any) (f float64, i int64, integer, ok bool) {
	switch v := v.(type) {
	case bool:
		return float64(toInt(v)), toInt(v), true, true
	case int64:
		return float64(v), v, true, true
	case float64:
		return v, 0, false, true
	}
	return 0, 0, false, false
}

// compareNumbers orders numbers exactly: an integer beyond 2^53 is no float.
func compareNumbers(a, b any) (order int, ok bool) {
	fa, ia, intA, okA := number(a)
	fb, ib, intB, okB := number(b)
	switch {
	case !okA || !okB || fa != fa || fb != fb:
		return 0, false
	case intA && intB:
		return compare(ia, ib), true
	case intA && math.Abs(fa) >= 1<<53 || intB && math.Abs(fb) >= 1<<53:
		failf("comparing an integer beyond 2^53 with a float is not supported")
	}
	return compare(fa, fb), true
}

func compare[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// equal is Python's ==.
func (m *machine) equal(a, b any) bool {
	m.enter()
	defer m.leave()
	m.spend(1)
	if _, _, _, ok := number(a); ok {
		order, ok := compareNumbers(a, b)
		return ok && order == 0
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		b, ok := textOf(b)
		return ok && a == b
	case markup:
		b, ok := textOf(b)
		return ok && string(a) == b
	case List:
		b, ok := b.(List)
		return ok && slices.EqualFunc(a, b, m.equal)
	case tuple:
		b, ok := b.(tuple)
		return ok && slices.EqualFunc(a, b, m.equal)
	case *Dict:
		b, ok := b.(*Dict)
		if !ok || a.Len() != b.Len() {
			return false
		}
		for i, k := range a.keys {
			if other, ok := b.get(k); !ok || !m.equal(a.values[i], other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case nil, undefined, bool, int64, float64, string, markup, List, tuple, *Dict:
		return false
	}
	failf("comparing a %s with a %s is not supported", typeName(a), typeName(b))
	return false
}

// order is negative, zero or positive as Python orders a and b.
func (m *machine) order(a, b any) int {
	m.enter()
	defer m.leave()
	m.spend(1)
	if _, _, _, ok := number(a); ok {
		if _, _, _, ok := number(b); ok {
			order, ok := compareNumbers(a, b)
			if !ok {
				failf("ordering NaN is not supported")
			}
			return order
		}
	}
	switch x := a.(type) {
	case string, markup:
		s, _ := textOf(x)
		if y, ok := textOf(b); ok {
			return strings.Compare(s, y)
		}
	case List:
		if y, ok := b.(List); ok {
			return m.orderAll(x, y)
		}
	case tuple:
		if y, ok := b.(tuple); ok {
			return m.orderAll(x, y)
		}
	}
	failf("a %s and a %s have no order", typeName(a), typeName(b))
	return 0
}

func (m *machine) orderAll(a, b []any) int {
	for i := range min(len(a), len(b)) {
		if !m.equal(a[i], b[i]) {
			return m.order(a[i], b[i])
		}
	}
	return compare(int64(len(a)), int64(len(b)))
}

// textOf gives a text, marked as safe or not.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}
