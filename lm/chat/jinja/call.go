package jinja

import (
	"slices"
	"strings"
)

// passed are the values of arguments.
type passed struct {
	values   []any
	names    []string
	keywords []any
	caller   *macroValue // in a call block
}

// function is a function, or a method of a value.
type function struct {
	name string
	call func(m *machine, given passed) any
}

// macroValue is a macro with the variables around it.
type macroValue struct {
	*macro
	scope *scope
}

// absent stands for an argument that was not given.
type absent struct{}

func (f *frame) given(a arguments) passed {
	g := passed{names: a.names}
	for _, e := range a.values {
		g.values = append(g.values, e.eval(f))
	}
	for _, e := range a.keywords {
		g.keywords = append(g.keywords, e.eval(f))
	}
	if a.spread != nil {
		g.spread(a.spread.eval(f))
	}
	f.spend(len(g.values) + len(g.keywords))
	return g
}

// spread adds the arguments that stand behind **.
func (a *passed) spread(v any) {
	d, ok := v.(*Dict)
	if !ok {
		failf("** needs a dict, and this is a %s", typeName(v))
	}
	a.names = slices.Clone(a.names)
	for i, key := range d.keys {
		name, ok := key.(string)
		switch {
		case !ok:
			failf("** needs names, and a key of the dict is a %s", typeName(key))
		case name == "caller" || strings.HasPrefix(name, "_"): // Jinja has uses of its own for them
			failf("an argument named %s behind ** is not supported", name)
		case slices.Contains(a.names, name):
			failf("the argument %s is given twice", name)
		}
		a.names, a.keywords = append(a.names, name), append(a.keywords, d.values[i])
	}
}

func (a passed) onlyValues(what string) {
	if len(a.names) > 0 {
		failf("%s has no argument named %s", what, a.names[0])
	}
}

// bind gives the values of the parameters, of which the first ones are required.
// Those whose name begins with a slash are given by place only.
func (a passed) bind(what string, required int, parameters ...string) []any {
	if len(a.values) > len(parameters) {
		failf("%s takes %d arguments, and %d are given", what, len(parameters), len(a.values))
	}
	bound := make([]any, len(parameters))
	for i := range bound {
		bound[i] = absent{}
	}
	copy(bound, a.values)
	for i, name := range a.names {
		at := slices.Index(parameters, name)
		if at < 0 || at < len(a.values) {
			failf("%s has no argument named %s, or it is given twice", what, name)
		}
		bound[at] = a.keywords[i]
	}
	for i := range required {
		if bound[i] == (absent{}) {
			failf("%s needs its argument %s", what, strings.TrimPrefix(parameters[i], "/"))
		}
	}
	return bound
}

func (e *call) eval(f *frame) any {
	f.spend(1)
	called := e.of.eval(f)
	given := f.given(e.with)
	switch c := called.(type) {
	case *function:
		return c.call(f.machine, given)
	case *macroValue:
		return f.callMacro(c, given)
	case *loopValue:
		if c.recurse == nil {
			failf("loop is called in a for loop that is not recursive")
		}
		return c.recurse(given.bind("loop", 1, "iterable")[0], c.depth+1)
	case undefined:
		failf("%s is not defined, and it is called", c.name)
	}
	failf("a %s is called", typeName(called))
	return nil
}

func (m *machine) callMacro(c *macroValue, given passed) string {
	m.enter()
	defer m.leave()
	line := m.line
	defer func() { m.line = line }()
	inner := &frame{m, &scope{map[string]any{}, c.scope}, &strings.Builder{}}
	values := inner.scope.values
	over := given.values[min(len(given.values), len(c.parameters)):]
	if len(over) > 0 && !c.readsVarargs {
		failf("the macro %s takes %d arguments, and %d are given", c.name, len(c.parameters), len(given.values))
	}
	if c.readsVarargs {
		values["varargs"] = tuple(over)
	}
	named := &Dict{}
	for i, name := range given.names {
		named.set(name, given.keywords[i])
	}
	set := make([]bool, len(c.parameters))
	for i, name := range c.parameters {
		keyword, ok := named.get(name)
		switch {
		case i < len(given.values) && ok:
			failf("the argument %s of the macro %s is given twice", name, c.name)
		case i < len(given.values):
			values[name], set[i] = given.values[i], true
		case ok:
			values[name], set[i] = keyword, true
		}
	}
	others := &Dict{}
	for i, name := range given.names {
		if !slices.Contains(c.parameters, name) {
			others.set(name, given.keywords[i])
		}
	}
	switch {
	case c.readsCaller && given.caller != nil:
		values["caller"] = given.caller
	case c.readsCaller:
		values["caller"] = undefined{"caller"}
	case given.caller != nil:
		failf("the macro %s takes no call block", c.name)
	}
	if c.readsKwargs {
		values["kwargs"] = others
	} else if others.Len() > 0 {
		failf("the macro %s has no argument named %s", c.name, others.keys[0])
	}
	inner.fillDefaults(c, set)
	inner.run(c.body)
	return inner.out.String()
}

// fillDefaults sets the parameters that were not given, in their order: a default
// may use the parameters before it.
func (f *frame) fillDefaults(c *macroValue, set []bool) {
	first := len(c.parameters) - len(c.defaults)
	for i, name := range c.parameters {
		if !set[i] {
			f.scope.values[name] = undefined{name}
		}
	}
	for i, name := range c.parameters {
		if !set[i] && i >= first {
			f.scope.values[name] = c.defaults[i-first].eval(f)
		}
	}
}
