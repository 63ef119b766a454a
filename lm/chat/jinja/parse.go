package jinja

import (
	"fmt"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

const (
	// MaxTemplate is the largest template in bytes. Those of models have at most
	// some 30 kB.
	MaxTemplate = 1 << 20
	// maxNesting bounds how deep blocks and expressions stand in one another.
	maxNesting = 200
)

// Template is a parsed template. Several goroutines may render it.
type Template struct {
	body    *block
	filters map[string]valueFilter
	tests   map[string]valueTest
}

// Parse reads a template. A feature of Jinja that this package does not have is an
// error that names it, here or when the template is rendered.
func Parse(source string) (t *Template, err error) {
	defer recoverTo(&err)
	if len(source) > MaxTemplate {
		return nil, fmt.Errorf("the template has %d bytes, and more than %d are not read", len(source), MaxTemplate)
	}
	if !utf8.ValidString(source) {
		return nil, fmt.Errorf("the template is not UTF-8")
	}
	p := &parser{tokens: lex(source), filters: newFilters(), tests: newTests()}
	t = &Template{p.block(), p.filters, p.tests}
	if p.now().kind != kindEnd {
		p.unexpected()
	}
	if len(p.unknown) > 0 {
		failf("%s", p.unknown[0])
	}
	hideTop(t.body)
	return t, nil
}

type parser struct {
	tokens  []token
	at      int
	depth   int
	nodes   int
	loops   int             // for blocks around, which break and continue may leave
	branch  bool            // the body that is read is a branch of an if
	unknown []string        // what says that a filter or test does not exist
	reads   map[string]bool // in a macro, the names that are read
	filters map[string]valueFilter
	tests   map[string]valueTest
}

func (p *parser) now() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != kindEnd {
		p.at++
	}
	return t
}

func (p *parser) ahead() token { return p.tokens[min(p.at+1, len(p.tokens)-1)] }

func (p *parser) is(k kind, text string) bool { return p.now().kind == k && p.now().text == text }

func (p *parser) skip(k kind, text string) bool {
	if p.is(k, text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) operator(text string) bool { return p.skip(kindOperator, text) }
func (p *parser) word(text string) bool     { return p.skip(kindName, text) }

func (p *parser) expect(k kind, text string) {
	if !p.skip(k, text) {
		p.unexpected()
	}
}

func (p *parser) expectKind(k kind) token {
	if p.now().kind != k {
		p.unexpected()
	}
	return p.next()
}

func (p *parser) fail(format string, args ...any) {
	failf("line %d: "+format, append([]any{p.now().line}, args...)...)
}

func (p *parser) unexpected() {
	switch t := p.now(); t.kind {
	case kindEnd:
		p.fail("the template ends within a block")
	case kindBlockEnd, kindVariableEnd:
		p.fail("the end of the tag is not expected here")
	case kindData, kindBlockBegin, kindVariableBegin:
		p.fail("the tag has an unexpected end")
	default:
		p.fail("%q is not expected here", short.Name(t.text))
	}
}

// deeper bounds the depth; its result is deferred.
func (p *parser) deeper() func() {
	p.depth++
	if p.depth > maxNesting {
		p.fail("blocks or expressions are nested more than %d deep, which is not supported", maxNesting)
	}
	return func() { p.depth-- }
}

// lately reads an expression of a statement. Jinja looks for filters and tests when
// a template is read, and in a branch of an if when they are used.
func (p *parser) lately(read func() expression) expression {
	if p.branch {
		return p.used(read)
	}
	return read()
}

// used reads an expression whose filters and tests are looked for when they are
// used.
func (p *parser) used(read func() expression) expression {
	known := len(p.unknown)
	e := read()
	p.unknown = p.unknown[:known]
	return e
}

// branchBlock reads the body of a branch of an if.
func (p *parser) branchBlock(ends ...string) *block {
	outer := p.branch
	p.branch = true
	defer func() { p.branch = outer }()
	return p.statements(ends)
}

// block reads statements up to a tag with one of the names, of which it has read
// the begin but not the name, or to the end.
func (p *parser) block(ends ...string) *block {
	outer := p.branch
	p.branch = false
	defer func() { p.branch = outer }()
	return p.statements(ends)
}

func (p *parser) statements(ends []string) *block {
	defer p.deeper()()
	b := &block{}
	for {
		switch t := p.now(); t.kind {
		case kindData:
			p.at++
			if t.text != "" {
				b.statements = append(b.statements, text{t.text})
			}
		case kindVariableBegin:
			p.at++
			of := p.lately(func() expression { return p.tuple(tupleOptions{}) })
			p.expectKind(kindVariableEnd)
			b.statements = append(b.statements, output{t.line, of})
		case kindBlockBegin:
			p.at++
			for _, end := range ends {
				if p.is(kindName, end) {
					return b
				}
			}
			b.statements = append(b.statements, p.statement())
			p.expectKind(kindBlockEnd)
		case kindEnd:
			if len(ends) > 0 {
				p.fail("%s is missing", ends[len(ends)-1])
			}
			return b
		default:
			p.unexpected()
		}
	}
}

// inner reads the body of a block that break and continue cannot leave.
func (p *parser) inner(end string) *block {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	p.expectKind(kindBlockEnd)
	b := p.block(end)
	p.expect(kindName, end)
	return b
}
