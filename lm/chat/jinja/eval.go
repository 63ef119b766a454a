package jinja

import (
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

func (e *constant) eval(*frame) any { return e.value }

func (e *name) eval(f *frame) any {
	f.spend(1)
	return f.lookup(e.name)
}

func (e *attribute) eval(f *frame) any {
	f.spend(1)
	return f.attribute(e.of.eval(f), e.name)
}

func (e *item) eval(f *frame) any {
	f.spend(1)
	of := e.of.eval(f)
	return f.item(of, e.key.eval(f))
}

func (e *part) eval(f *frame) any {
	bound := func(e expression) any {
		if e == nil {
			return nil
		}
		return e.eval(f)
	}
	of := e.of.eval(f)
	return f.slice(of, bound(e.from), bound(e.to), bound(e.step))
}

func (e *list) eval(f *frame) any {
	items := make([]any, len(e.items))
	f.spend(len(items))
	for i, item := range e.items {
		items[i] = item.eval(f)
	}
	if e.tuple {
		return tuple(items)
	}
	return List(items)
}

func (e *dictionary) eval(f *frame) any {
	d := &Dict{}
	f.spend(len(e.keys))
	for i, key := range e.keys {
		k := key.eval(f)
		d.set(k, e.values[i].eval(f))
	}
	return d
}

func (e *unary) eval(f *frame) any {
	f.spend(1)
	v := e.of.eval(f)
	if e.operator == "not" {
		return !truth(v)
	}
	return negate(e.operator, v)
}

func (e *binary) eval(f *frame) any {
	f.spend(1)
	left := e.left.eval(f)
	switch {
	case e.operator == "and" && !truth(left), e.operator == "or" && truth(left):
		return left
	case e.operator == "and", e.operator == "or":
		return e.right.eval(f)
	}
	return f.arithmetic(e.operator, left, e.right.eval(f))
}

func (e *concatenation) eval(f *frame) any {
	var b strings.Builder
	for _, part := range e.parts {
		f.spend(1)
		b.WriteString(f.made(f.str(part.eval(f))))
	}
	return b.String()
}

func (e *comparison) eval(f *frame) any {
	left := e.first.eval(f)
	for i, operator := range e.operators {
		f.spend(1)
		right := e.others[i].eval(f)
		if !f.compare(operator, left, right) {
			return false
		}
		left = right
	}
	return true
}

func (f *frame) compare(operator string, a, b any) bool {
	switch operator {
	case "==":
		return f.equal(a, b)
	case "!=":
		return !f.equal(a, b)
	case "in":
		return f.contains(b, a)
	case "not in":
		return !f.contains(b, a)
	}
	if fa, _, _, ok := number(a); ok {
		if fb, _, _, ok := number(b); ok && (fa != fa || fb != fb) {
			return false // nan
		}
	}
	order := f.order(a, b)
	switch operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// contains is Python's in.
func (m *machine) contains(in, v any) bool {
	switch in := in.(type) {
	case string, markup:
		part, ok := textOf(v)
		if !ok {
			failf("a %s is looked for in a text", typeName(v))
		}
		return strings.Contains(m.made(m.str(in)), part)
	case *Dict:
		if _, ok := keyOf(v); !ok && !is[undefined](v) {
			failf("a %s is looked for in a dict, which is not supported", typeName(v))
		}
		_, ok := in.get(v)
		return ok
	case view:
		if _, ok := keyOf(v); in.kind == "dict_keys" && !ok && !is[undefined](v) {
			failf("a %s is looked for in the keys of a dict, which is not supported", typeName(v))
		}
	case *iterator:
		for len(in.rest) > 0 {
			one := in.rest[0]
			in.rest = in.rest[1:]
			if m.equal(one, v) {
				return true
			}
		}
		return false
	}
	for _, one := range m.iterate(in) {
		if m.equal(one, v) {
			return true
		}
	}
	return false
}

func (e *choice) eval(f *frame) any {
	f.spend(1)
	if truth(e.test.eval(f)) {
		return e.yes.eval(f)
	}
	if e.no == nil {
		return undefined{"the value of an if without else"}
	}
	return e.no.eval(f)
}

func (e *filter) eval(f *frame) any { return f.filtered(e, nil) }

// filtered applies a chain of filters; the first one's value is begin where it has
// none of its own.
func (f *frame) filtered(e *filter, begin any) any {
	f.spend(1)
	value := begin
	if inner, ok := e.of.(*filter); ok {
		value = f.filtered(inner, begin)
	} else if e.of != nil {
		value = e.of.eval(f)
	}
	apply, ok := f.filters[e.name]
	if !ok {
		failf("the filter %q is not supported", short.Name(e.name))
	}
	return apply(f.machine, value, f.given(e.with))
}

func (e *test) eval(f *frame) any {
	f.spend(1)
	value := e.of.eval(f)
	passes, ok := f.tests[e.name]
	if !ok {
		failf("the test %q is not supported", short.Name(e.name))
	}
	return passes(f.machine, value, f.given(e.with))
}
