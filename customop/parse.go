package customop

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// parser takes a node apart for a generated Parse function, and keeps the first error.
type parser struct {
	node Node
	seen int // attributes that were read
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("node %q (%s): %w", short.Name(p.node.Name), short.Name(p.node.OpType), fmt.Errorf(format, args...))
	}
}

// op checks the node's op and the specification that it was written for.
func (p *parser) op(spec Spec) {
	if p.node.Domain != Domain || !slices.Contains(spec.OpTypes(), p.node.OpType) {
		p.fail("it is not a %s of the domain %s", spec.Name, Domain)
	}
	var version int64
	p.int("spec_version", &version, true)
	if version > SpecVersion {
		p.fail("it needs specification %d of the op, but this rope-rewrite knows specifications up to %d; use a newer one", version, SpecVersion)
	}
}

func (p *parser) names(kind string, from []string, to ...*string) {
	if len(from) > len(to) {
		p.fail("it has %d %s, but the op has %d", len(from), kind, len(to))
		return
	}
	for i, name := range from {
		*to[i] = name
	}
}

// attribute returns the attribute with a name, of the expected kind; nil where there is none.
func (p *parser) attribute(name string, kind Kind, required bool) *NodeAttribute {
	a, ok := p.node.Attribute(name)
	switch {
	case !ok && required:
		p.fail("%s is missing", name)
	case ok && a.Kind != kind:
		p.fail("%s has another type than the op's", name)
	case ok:
		p.seen++
		return &a
	}
	return nil
}

func (p *parser) int(name string, to *int64, required bool) {
	if a := p.attribute(name, Int, required); a != nil {
		*to = a.Int
	}
}

func (p *parser) float(name string, to *float32, required bool) {
	if a := p.attribute(name, Float, required); a != nil {
		*to = a.Float
	}
}

func (p *parser) string(name string, to *string, required bool) {
	if a := p.attribute(name, Text, required); a != nil {
		*to = a.Text
	}
}

func (p *parser) ints(name string, to *[]int64, required bool) {
	if a := p.attribute(name, Ints, required); a != nil {
		*to = a.Ints
	}
}

func (p *parser) floats(name string, to *[]float32, required bool) {
	if a := p.attribute(name, Floats, required); a != nil {
		*to = a.Floats
	}
}

// end checks that nothing was left over, and what the whole node says.
func (p *parser) end(check func() error) error {
	if p.seen < len(p.node.Attributes) {
		p.fail("it has an attribute that the op does not know, or one twice")
	}
	if err := check(); err != nil {
		p.fail("%w", err)
	}
	return p.err
}
