package jinja

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

func (p *parser) statement() statement {
	t := p.expectKind(kindName)
	switch t.text {
	case "if":
		return p.conditional(t.line)
	case "for":
		return p.loop(t.line)
	case "break", "continue":
		if p.loops == 0 {
			p.fail("%s is outside a for loop", t.text)
		}
		if t.text == "break" {
			return jump{signalBreak}
		}
		return jump{signalContinue}
	case "set":
		return p.set(t.line)
	case "macro":
		m := &macro{name: p.newName()}
		p.signature(m)
		p.macroBody(m, "endmacro")
		return define{t.line, m}
	case "call":
		return p.callBlock(t.line)
	case "filter":
		f := p.chain(nil, true)
		return filterBlock{t.line, f, p.inner("endfilter")}
	case "with":
		return p.with(t.line)
	case "generation":
		return generation{p.inner("endgeneration")}
	case "raw", "endraw":
		p.fail("%s is not expected here", t.text)
	}
	p.fail("the tag %q is not supported", short.Name(t.text))
	return nil
}

func (p *parser) conditional(line int) statement {
	var c conditional
	for {
		test := p.used(func() expression { return p.tuple(tupleOptions{noChoice: true}) })
		p.expectKind(kindBlockEnd)
		body := p.branchBlock("elif", "else", "endif")
		c.branches = append(c.branches, branch{line, test, body})
		switch end := p.next(); end.text {
		case "elif":
			line = end.line
		case "else":
			p.expectKind(kindBlockEnd)
			c.otherwise = p.branchBlock("endif")
			p.expect(kindName, "endif")
			return c
		default:
			return c
		}
	}
}

func (p *parser) loop(line int) statement {
	l := loop{line: line}
	l.to = p.target(tupleOptions{})
	if l.to.holds(func(t target) bool { return t.attribute != "" }) {
		p.fail("a for cannot assign to an attribute")
	}
	p.expect(kindName, "in")
	l.over = p.lately(func() expression { return p.tuple(tupleOptions{noChoice: true}) })
	if p.word("if") {
		l.test = p.expression()
	}
	l.recursive = p.word("recursive")
	p.expectKind(kindBlockEnd)
	p.loops++
	l.body = p.block("else", "endfor")
	p.loops--
	if p.next().text == "else" {
		p.expectKind(kindBlockEnd)
		l.otherwise = p.block("endfor")
		p.expect(kindName, "endfor")
	}
	if l.to.holds(func(t target) bool { return t.name == "loop" }) || assignsLoop(l.body) {
		p.fail("a for cannot assign to loop")
	}
	return l
}

func (p *parser) set(line int) statement {
	to := p.target(tupleOptions{attributes: true})
	if p.operator("=") {
		return set{line, to, p.lately(func() expression { return p.tuple(tupleOptions{}) })}
	}
	var f *filter
	if p.is(kindOperator, "|") {
		f = p.chain(nil, false)
	}
	return setBlock{line, to, f, p.inner("endset")}
}

func (p *parser) with(line int) statement {
	w := with{line: line}
	for p.now().kind != kindBlockEnd {
		if len(w.to) > 0 {
			p.expect(kindOperator, ",")
		}
		w.to = append(w.to, p.target(tupleOptions{}))
		p.expect(kindOperator, "=")
		w.values = append(w.values, p.lately(p.expression))
	}
	p.expectKind(kindBlockEnd)
	w.body = p.block("endwith")
	p.expect(kindName, "endwith")
	return w
}

func (p *parser) callBlock(line int) statement {
	m := &macro{name: "caller"}
	if p.is(kindOperator, "(") {
		p.signature(m)
	}
	c, ok := p.lately(p.expression).(*call)
	if !ok {
		p.fail("a call block needs a call")
	}
	p.macroBody(m, "endcall")
	return callBlock{line, c, m}
}

// macroBody notes which of the special variables the body reads.
func (p *parser) macroBody(m *macro, end string) {
	outer := p.reads
	p.reads = map[string]bool{}
	m.body = p.inner(end)
	m.readsCaller, m.readsVarargs, m.readsKwargs = p.reads["caller"], p.reads["varargs"], p.reads["kwargs"]
	for n := range p.reads {
		if outer != nil {
			outer[n] = true
		}
	}
	p.reads = outer
}

func (p *parser) signature(m *macro) {
	p.expect(kindOperator, "(")
	for !p.is(kindOperator, ")") {
		if len(m.parameters) > 0 {
			p.expect(kindOperator, ",")
		}
		parameter := p.newName()
		if slices.Contains(m.parameters, parameter) {
			p.fail("the parameter %s is given twice", parameter)
		}
		m.parameters = append(m.parameters, parameter)
		if p.operator("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if len(m.defaults) > 0 {
			p.fail("the parameter %s needs a default, as the one before it has", parameter)
		}
	}
	p.expect(kindOperator, ")")
}

// constants are names that Jinja reads as values.
var constants = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

// newName reads a name that is assigned to.
func (p *parser) newName() string {
	t := p.expectKind(kindName)
	if _, ok := constants[t.text]; ok {
		p.fail("%s cannot be assigned to", t.text)
	}
	if t.text == "caller" || t.text == "varargs" || t.text == "kwargs" {
		p.fail("assigning to %s, which is special in macros, is not supported", t.text)
	}
	return t.text
}

// target reads what is assigned to. Options are those of tuples.
func (p *parser) target(o tupleOptions) target {
	defer p.deeper()()
	var several []target
	tuple := false
	for {
		if len(several) > 0 {
			p.expect(kindOperator, ",")
		}
		if p.tupleEnds() {
			break
		}
		several = append(several, p.oneTarget(o))
		if !p.is(kindOperator, ",") {
			break
		}
		tuple = true
	}
	switch {
	case len(several) == 0:
		p.unexpected()
	case !tuple:
		return several[0]
	}
	return target{several: several, tuple: true}
}

func (p *parser) oneTarget(o tupleOptions) target {
	if p.operator("(") {
		t := p.target(tupleOptions{})
		p.expect(kindOperator, ")")
		return t
	}
	t := target{name: p.newName()}
	if o.attributes && p.operator(".") {
		t.attribute = p.expectKind(kindName).text
	}
	return t
}

func (t target) holds(test func(target) bool) bool {
	return test(t) || slices.ContainsFunc(t.several, func(t target) bool { return t.holds(test) })
}
