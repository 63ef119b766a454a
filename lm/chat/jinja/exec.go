package jinja

import "strings"

// signal says how a body was left.
type signal int

const (
	signalNone signal = iota
	signalBreak
	signalContinue
)

func (s text) exec(f *frame) signal {
	f.write(s.text)
	return signalNone
}

func (s output) exec(f *frame) signal {
	f.line = s.line
	f.write(f.str(s.of.eval(f)))
	return signalNone
}

func (s conditional) exec(f *frame) signal {
	for _, b := range s.branches {
		f.line = b.line
		if truth(b.test.eval(f)) {
			return f.statements(b.body)
		}
	}
	if s.otherwise != nil {
		return f.statements(s.otherwise)
	}
	return signalNone
}

func (s jump) exec(*frame) signal { return s.signal }

func (s set) exec(f *frame) signal {
	f.line = s.line
	f.assign(s.to, s.of.eval(f))
	return signalNone
}

func (s setBlock) exec(f *frame) signal {
	f.line = s.line
	var value any = f.capture(s.body, nil)
	if s.filters != nil {
		value = f.inner(nil, nil).filtered(s.filters, value)
	}
	f.assign(s.to, value)
	return signalNone
}

func (s filterBlock) exec(f *frame) signal {
	f.line = s.line
	f.write(f.str(f.filtered(s.filters, f.capture(s.body, nil))))
	return signalNone
}

func (s with) exec(f *frame) signal {
	f.line = s.line
	inner := f.inner(nil, nil)
	for i, to := range s.to {
		inner.assign(to, s.values[i].eval(f))
	}
	return inner.run(s.body)
}

// In Jinja the body of generation is that of a macro which is called with nothing.
func (s generation) exec(f *frame) signal {
	f.write(f.capture(s.body, map[string]any{"caller": undefined{"caller"}, "varargs": tuple{}, "kwargs": &Dict{}}))
	return signalNone
}

func (s define) exec(f *frame) signal {
	f.scope.values[s.macro.name] = &macroValue{s.macro, f.scope}
	return signalNone
}

func (s callBlock) exec(f *frame) signal {
	f.line = s.line
	called := s.call.of.eval(f)
	macro, ok := called.(*macroValue)
	if !ok {
		failf("a call block needs a macro, and this is a %s", typeName(called))
	}
	given := f.given(s.call.with)
	given.caller = &macroValue{s.body, f.scope}
	f.write(f.callMacro(macro, given))
	return signalNone
}

// assign sets variables of f's own scope, or an attribute of a namespace.
func (f *frame) assign(to target, value any) {
	switch {
	case to.tuple:
		values := f.iterate(value)
		if len(values) != len(to.several) {
			failf("%d values are assigned to %d names", len(values), len(to.several))
		}
		for i, one := range to.several {
			f.assign(one, values[i])
		}
	case to.attribute != "":
		ns, ok := f.lookup(to.name).(*namespace)
		if !ok {
			failf("%s is not a namespace, so its attribute %s cannot be set", to.name, to.attribute)
		}
		ns.values.set(to.attribute, value)
	default:
		f.scope.values[to.name] = value
	}
}

// loopValue is the variable loop.
type loopValue struct {
	items   []any
	at      int
	depth   int64
	changed []any // what changed was called with last
	recurse func(items any, depth int64) string
}

func (s loop) exec(f *frame) signal {
	f.line = s.line
	return s.render(f, s.over.eval(f), 0)
}

// render renders the loop over a value. Jumps end in it.
func (s loop) render(f *frame, over any, depth int64) signal {
	l := &loopValue{items: s.selected(f, f.iterate(over)), depth: depth}
	if s.recursive {
		l.recurse = func(items any, depth int64) string {
			f.enter()
			defer f.leave()
			inner := &frame{f.machine, f.scope, &strings.Builder{}}
			s.render(inner, items, depth)
			return inner.out.String()
		}
	}
	completed := false // else is for a loop of which no round went to its end
	for ; l.at < len(l.items); l.at++ {
		inner := f.inner(nil, nil)
		inner.scope.values["loop"] = l
		inner.assign(s.to, l.items[l.at])
		f.spend(1)
		left := inner.run(s.body)
		if left == signalBreak {
			break
		}
		completed = completed || left == signalNone
	}
	if !completed && s.otherwise != nil {
		return f.inner(nil, nil).run(s.otherwise)
	}
	return signalNone
}

// selected gives the items that the loop's condition lets through.
func (s loop) selected(f *frame, items []any) []any {
	if s.test == nil {
		return items
	}
	var kept []any
	for _, value := range items {
		inner := f.inner(nil, nil)
		inner.assign(s.to, value)
		f.spend(1)
		if truth(s.test.eval(inner)) {
			kept = append(kept, value)
		}
	}
	return kept
}

func (l *loopValue) attribute(m *machine, name string) any {
	n, at := int64(len(l.items)), int64(l.at)
	near := func(i int) any {
		if i < 0 || i >= len(l.items) {
			return undefined{"loop." + name}
		}
		return l.items[i]
	}
	switch name {
	case "index":
		return at + 1
	case "index0":
		return at
	case "revindex":
		return n - at
	case "revindex0":
		return n - at - 1
	case "first":
		return at == 0
	case "last":
		return at == n-1
	case "length":
		return n
	case "depth":
		return l.depth + 1
	case "depth0":
		return l.depth
	case "previtem":
		return near(l.at - 1)
	case "nextitem":
		return near(l.at + 1)
	case "cycle":
		return &function{"cycle", func(m *machine, given passed) any {
			given.onlyValues("cycle")
			if len(given.values) == 0 {
				failf("cycle needs values")
			}
			return given.values[l.at%len(given.values)]
		}}
	case "changed":
		return &function{"changed", func(m *machine, given passed) any {
			given.onlyValues("changed")
			same := l.changed != nil && m.equal(List(l.changed), List(given.values))
			l.changed = append([]any{}, given.values...)
			return !same
		}}
	}
	if name[0] == '_' {
		failf("the attribute %s of loop is not supported", name)
	}
	return undefined{"loop." + name}
}
