package jinja

import "slices"

// Jinja resolves names before it renders. Within a body (a template, a for, a
// macro, ...) a name whose first use there is an assignment is undefined from the
// body's begin on, even where a variable given to the template has that name:
//
//	{% for x in xs %}{{ n }}{% endfor %}{% set n = 1 %}
//
// prints nothing for n. An if is no body of its own, and what is assigned in one
// is no such name. hide finds them.

// names are those that a body and the bodies around it use.
type names struct {
	outer *names
	own   map[string]bool
}

func (n *names) has(name string) bool {
	for ; n != nil; n = n.outer {
		if n.own[name] {
			return true
		}
	}
	return false
}

func hideTop(b *block) { hide(b, nil, nil, nil) }

// hide fills the hidden names of a body, and of those within. Parameters are set
// when it is entered, and loads are what is evaluated before it.
func hide(b *block, outer *names, parameters []string, loads []expression) {
	n := &names{outer, map[string]bool{}}
	for _, p := range parameters {
		n.own[p] = true
	}
	for _, e := range loads {
		n.load(e)
	}
	b.hidden = n.uses(b.statements, false, nil)
	n.within(b.statements)
}

func (n *names) load(e expression) {
	walk(e, func(e expression) {
		if used, ok := e.(*name); ok && !n.has(used.name) {
			n.own[used.name] = true
		}
	})
}

// uses notes the names that the statements themselves use, in their order, and
// returns hidden with those that are assigned first.
func (n *names) uses(statements []statement, conditionally bool, hidden []string) []string {
	var store func(t target)
	store = func(t target) {
		for _, one := range t.several {
			store(one)
		}
		if t.tuple || n.own[t.name] {
			return
		}
		if t.attribute == "" && !conditionally && !n.has(t.name) {
			hidden = append(hidden, t.name)
		}
		n.own[t.name] = true
	}
	for _, s := range statements {
		switch s := s.(type) {
		case output:
			n.load(s.of)
		case set:
			n.load(s.of)
			store(s.to)
		case setBlock:
			store(s.to)
		case define:
			store(target{name: s.macro.name})
		case loop:
			n.load(s.over)
		case with:
			for _, e := range s.values {
				n.load(e)
			}
		case filterBlock:
			n.load(s.filters)
		case callBlock:
			n.load(s.call)
		case conditional:
			for _, b := range s.branches {
				n.load(b.test)
				n.uses(b.body.statements, true, nil)
			}
			if s.otherwise != nil {
				n.uses(s.otherwise.statements, true, nil)
			}
		}
	}
	return hidden
}

// within goes through the bodies that stand in the statements.
func (n *names) within(statements []statement) {
	for _, s := range statements {
		switch s := s.(type) {
		case setBlock:
			hide(s.body, n, nil, nil)
		case filterBlock:
			hide(s.body, n, nil, nil)
		case generation:
			hide(s.body, n, (&macro{}).scope(), nil)
		case define:
			hide(s.macro.body, n, s.macro.scope(), s.macro.defaults)
		case callBlock:
			hide(s.body.body, n, s.body.scope(), s.body.defaults)
		case with:
			hide(s.body, n, assigned(s.to), nil)
		case loop:
			hide(s.body, n, append(assigned([]target{s.to}), "loop"), nil)
			if s.otherwise != nil {
				hide(s.otherwise, n, nil, nil)
			}
		case conditional:
			for _, b := range s.branches {
				n.within(b.body.statements)
			}
			if s.otherwise != nil {
				n.within(s.otherwise.statements)
			}
		}
	}
}

func (m *macro) scope() []string {
	return append(slices.Clone(m.parameters), "caller", "varargs", "kwargs")
}

func assigned(targets []target) []string {
	var found []string
	for _, t := range targets {
		if t.tuple {
			found = append(found, assigned(t.several)...)
		} else {
			found = append(found, t.name)
		}
	}
	return found
}

// walk visits an expression and what it is made of.
func walk(e expression, visit func(expression)) {
	all := func(of ...expression) {
		for _, one := range of {
			walk(one, visit)
		}
	}
	switch e := e.(type) {
	case nil:
		return
	case *filter:
		if e == nil {
			return
		}
		all(e.of)
		all(e.with.values...)
		all(e.with.keywords...)
		all(e.with.spread)
	case *test:
		all(e.of)
		all(e.with.values...)
		all(e.with.keywords...)
		all(e.with.spread)
	case *call:
		all(e.of)
		all(e.with.values...)
		all(e.with.keywords...)
		all(e.with.spread)
	case *attribute:
		all(e.of)
	case *item:
		all(e.of, e.key)
	case *part:
		all(e.of, e.from, e.to, e.step)
	case *list:
		all(e.items...)
	case *dictionary:
		all(e.keys...)
		all(e.values...)
	case *unary:
		all(e.of)
	case *binary:
		all(e.left, e.right)
	case *concatenation:
		all(e.parts...)
	case *comparison:
		all(e.first)
		all(e.others...)
	case *choice:
		all(e.test, e.yes, e.no)
	}
	visit(e)
}

// assignsLoop says whether a body of a for assigns to its variable loop.
func assignsLoop(b *block) bool {
	isLoop := func(t target) bool {
		return t.holds(func(t target) bool { return t.name == "loop" && t.attribute == "" })
	}
	return b != nil && slices.ContainsFunc(b.statements, func(s statement) bool {
		switch s := s.(type) {
		case set:
			return isLoop(s.to)
		case setBlock:
			return isLoop(s.to) || assignsLoop(s.body)
		case filterBlock:
			return assignsLoop(s.body)
		case generation:
			return assignsLoop(s.body)
		case define:
			return assignsLoop(s.macro.body) || slices.Contains(s.macro.parameters, "loop")
		case callBlock:
			return assignsLoop(s.body.body) || slices.Contains(s.body.parameters, "loop")
		case with:
			return slices.ContainsFunc(s.to, isLoop) || assignsLoop(s.body)
		case conditional:
			return assignsLoop(s.otherwise) || slices.ContainsFunc(s.branches, func(b branch) bool { return assignsLoop(b.body) })
		}
		return false
	})
}
