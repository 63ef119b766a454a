package jinja

import (
	"strconv"
	"strings"
)

type tupleOptions struct {
	noChoice   bool // "x if y" is not read
	attributes bool // of a target: a namespace's attribute may be assigned to
	bracketed  bool // in parentheses, so it may be empty
}

func (p *parser) tupleEnds() bool {
	t := p.now()
	return t.kind == kindVariableEnd || t.kind == kindBlockEnd || p.is(kindOperator, ")")
}

// tuple reads an expression, or several with commas between.
func (p *parser) tuple(o tupleOptions) expression {
	var items []expression
	several := false
	for {
		if len(items) > 0 {
			p.expect(kindOperator, ",")
		}
		if p.tupleEnds() {
			break
		}
		if o.noChoice {
			items = append(items, p.or())
		} else {
			items = append(items, p.expression())
		}
		if !p.is(kindOperator, ",") {
			break
		}
		several = true
	}
	if several || o.bracketed && len(items) == 0 {
		return &list{items, true}
	}
	if len(items) == 0 {
		p.unexpected()
	}
	return items[0]
}

func (p *parser) expression() expression {
	defer p.deeper()()
	known := len(p.unknown)
	e := p.or()
	for p.word("if") {
		c := &choice{test: p.or(), yes: e}
		if p.word("else") {
			c.no = p.expression()
		}
		e = p.grown(c)
		p.unknown = p.unknown[:known] // as in a branch of an if
	}
	return e
}

// grown bounds how long a chain of operators is: each stands in the next one.
func (p *parser) grown(e expression) expression {
	p.nodes++
	if p.nodes > maxNodes {
		p.fail("the template has more than %d operators, which is not supported", maxNodes)
	}
	return e
}

// maxNodes bounds the depth of what is evaluated, too.
const maxNodes = 5_000

func (p *parser) or() expression {
	left := p.and()
	for p.word("or") {
		left = p.grown(&binary{"or", left, p.and()})
	}
	return left
}

func (p *parser) and() expression {
	left := p.not()
	for p.word("and") {
		left = p.grown(&binary{"and", left, p.not()})
	}
	return left
}

func (p *parser) not() expression {
	defer p.deeper()()
	if p.word("not") {
		return &unary{"not", p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expression {
	c := &comparison{first: p.sum()}
	for {
		operator := ""
		switch t := p.now(); {
		case t.kind == kindOperator:
			switch t.text {
			case "==", "!=", "<", "<=", ">", ">=":
				operator = t.text
				p.at++
			}
		case p.word("in"):
			operator = "in"
		case p.is(kindName, "not") && p.ahead().kind == kindName && p.ahead().text == "in":
			p.at += 2
			operator = "not in"
		}
		if operator == "" {
			break
		}
		c.operators = append(c.operators, operator)
		c.others = append(c.others, p.sum())
	}
	if len(c.operators) == 0 {
		return c.first
	}
	return c
}

// operators reads a chain of operators that bind alike, from the left.
func (p *parser) operators(below func() expression, which ...string) expression {
	left := below()
chain:
	for {
		for _, operator := range which {
			if p.operator(operator) {
				left = p.grown(&binary{operator, left, below()})
				continue chain
			}
		}
		return left
	}
}

func (p *parser) sum() expression { return p.operators(p.concatenation, "+", "-") }

func (p *parser) concatenation() expression {
	parts := []expression{p.product()}
	for p.operator("~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &concatenation{parts}
}

func (p *parser) product() expression { return p.operators(p.power, "*", "/", "//", "%") }

func (p *parser) power() expression {
	return p.operators(func() expression { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) expression {
	defer p.deeper()()
	var e expression
	switch {
	case p.operator("-"):
		e = &unary{"-", p.unary(false)}
	case p.operator("+"):
		e = &unary{"+", p.unary(false)}
	default:
		e = p.primary()
	}
	e = p.postfix(e)
	if filters {
		e = p.filtered(e)
	}
	return e
}

func (p *parser) primary() expression {
	t := p.now()
	switch {
	case t.kind == kindName:
		p.at++
		if value, ok := constants[t.text]; ok {
			return &constant{value}
		}
		if t.text == "self" {
			p.fail("the variable self is not supported")
		}
		if p.reads != nil {
			p.reads[t.text] = true
		}
		return &name{t.text}
	case t.kind == kindString:
		var b strings.Builder
		for p.now().kind == kindString {
			b.WriteString(p.next().text)
		}
		return &constant{b.String()}
	case t.kind == kindInteger:
		return &constant{p.integer()}
	case t.kind == kindFloat:
		p.at++
		value, _ := strconv.ParseFloat(t.text, 64) // too large ones are infinite, as in Python
		return &constant{value}
	case p.operator("("):
		e := p.tuple(tupleOptions{bracketed: true})
		p.expect(kindOperator, ")")
		return e
	case p.operator("["):
		l := &list{}
		p.until("]", func() { l.items = append(l.items, p.expression()) })
		return l
	case p.operator("{"):
		d := &dictionary{}
		p.until("}", func() {
			d.keys = append(d.keys, p.expression())
			p.expect(kindOperator, ":")
			d.values = append(d.values, p.expression())
		})
		return d
	}
	p.unexpected()
	return nil
}

func (p *parser) integer() int64 {
	t := p.expectKind(kindInteger)
	value, err := strconv.ParseInt(t.text, 0, 64)
	if strings.Trim(t.text, "0") == "" {
		value, err = 0, nil
	}
	if err != nil {
		p.fail("the number %s is not supported, as it does not fit into 64 bits", t.text)
	}
	return value
}

// until reads what is separated by commas up to a bracket; a comma may end it.
func (p *parser) until(end string, one func()) {
	for first := true; !p.is(kindOperator, end); first = false {
		if !first {
			p.expect(kindOperator, ",")
			if p.is(kindOperator, end) {
				break
			}
		}
		one()
	}
	p.expect(kindOperator, end)
}
