package jinja

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

func (p *parser) postfix(e expression) expression {
	for {
		switch {
		case p.operator("."):
			if t := p.now(); t.kind == kindInteger {
				e = p.grown(&item{e, &constant{p.integer()}})
			} else {
				e = p.grown(&attribute{e, p.expectKind(kindName).text})
			}
		case p.operator("["):
			e = p.grown(p.subscript(e))
		case p.is(kindOperator, "("):
			e = p.grown(&call{e, p.arguments()})
		default:
			return e
		}
	}
}

func (p *parser) subscript(of expression) expression {
	var first expression
	if !p.is(kindOperator, ":") {
		first = p.expression()
		if p.operator("]") {
			return &item{of, first}
		}
	}
	if p.is(kindOperator, ",") {
		p.fail("several keys in one subscript are not supported")
	}
	p.expect(kindOperator, ":")
	s := &part{of: of, from: first}
	if !p.is(kindOperator, ":") && !p.is(kindOperator, "]") {
		s.to = p.expression()
	}
	if p.operator(":") && !p.is(kindOperator, "]") {
		s.step = p.expression()
	}
	p.expect(kindOperator, "]")
	return s
}

func (p *parser) arguments() arguments {
	var a arguments
	p.expect(kindOperator, "(")
	p.until(")", func() {
		switch {
		case p.is(kindOperator, "*"):
			p.fail("arguments with * are not supported")
		case a.spread != nil:
			p.fail("an argument follows one with **")
		case p.operator("**"):
			a.spread = p.expression()
		case p.now().kind == kindName && p.ahead().kind == kindOperator && p.ahead().text == "=":
			a.names = append(a.names, p.next().text)
			p.at++
			a.keywords = append(a.keywords, p.expression())
		case len(a.names) > 0:
			p.fail("an argument without a name follows one with a name")
		default:
			a.values = append(a.values, p.expression())
		}
	})
	for i, n := range a.names {
		for _, other := range a.names[:i] {
			if n == other {
				p.fail("the argument %s is given twice", n)
			}
		}
	}
	return a
}

// filtered reads the filters, tests and calls behind an expression.
func (p *parser) filtered(e expression) expression {
	for {
		switch {
		case p.is(kindOperator, "|"):
			e = p.chain(e, false)
		case p.word("is"):
			e = p.grown(p.test(e))
		case p.is(kindOperator, "("):
			e = p.grown(&call{e, p.arguments()})
		default:
			return e
		}
	}
}

// chain reads a chain of filters; the first of a filter block has no bar.
func (p *parser) chain(of expression, first bool) *filter {
	var last *filter
	for first || p.operator("|") {
		first = false
		f := &filter{of: of, name: p.expectKind(kindName).text}
		if p.is(kindOperator, ".") {
			p.fail("filters with a dot are not supported")
		}
		if _, ok := p.filters[f.name]; !ok && !slices.Contains(unsupportedFilters, f.name) {
			p.missing("filter", f.name)
		}
		if p.is(kindOperator, "(") {
			f.with = p.arguments()
		}
		p.grown(f)
		last, of = f, f
	}
	return last
}

func (p *parser) missing(kind, name string) {
	p.unknown = append(p.unknown, fmt.Sprintf("line %d: there is no %s %q", p.now().line, kind, short.Name(name)))
}

func (p *parser) test(of expression) expression {
	not := p.word("not")
	t := &test{of: of, name: p.expectKind(kindName).text}
	if _, ok := p.tests[t.name]; !ok && !slices.Contains(unsupportedTests, t.name) {
		p.missing("test", t.name)
	}
	switch now := p.now(); {
	case p.is(kindOperator, "("):
		t.with = p.arguments()
	case p.is(kindName, "is"):
		p.fail("a test of a test needs parentheses")
	case now.kind == kindName && now.text != "else" && now.text != "or" && now.text != "and",
		now.kind == kindString, now.kind == kindInteger, now.kind == kindFloat, p.is(kindOperator, "["), p.is(kindOperator, "{"):
		t.with.values = []expression{p.postfix(p.primary())}
	}
	if not {
		return &unary{"not", t}
	}
	return t
}
