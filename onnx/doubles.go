package onnx

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// errDouble ends a message about two things of one name.
var errDouble = errors.New("programs differ in which of them they read, so remove or rename one, or export the model again")

// checkDoubles returns an error about the first two things of one name that a model may have once: initializers (dense or
// sparse), inputs, outputs and values of a graph or function, attributes of a node, operator sets, functions and entries of
// the metadata. Of two such things programs read one or the other: ONNX Runtime takes the first of two large initializers,
// and the last of two small ones.
//
// Three names are used again and mean one thing: an initializer named like an input of its graph is its default; a graph
// inside a node may have names of the graph around it; and two graphs beside each other may have the same names.
func (m *Model) checkDoubles() error {
	sets, functions, metadata := taken{}, taken{}, taken{}
	sets.opsets(m.opsets)
	for _, f := range m.Functions {
		functions.by("a function", standard(f.Domain)+":"+f.Name+":"+f.Overload)
	}
	for _, e := range m.metadata {
		metadata.by("an entry of the metadata", e.key)
	}
	if err := cmp.Or(sets.double, functions.double, metadata.double, m.Graph.checkDoubles()); err != nil {
		return err
	}
	for _, f := range m.Functions {
		if err := f.checkDoubles(); err != nil {
			return fmt.Errorf("function %q: %w", short.Name(f.Name), err)
		}
	}
	return nil
}

func (g *Graph) checkDoubles() error {
	values, constants, outputs := taken{}, taken{}, taken{}
	for _, v := range g.Inputs {
		values.by("an input", v.Name)
	}
	for _, t := range g.Initializers {
		constants.by("an initializer", t.Name)
	}
	for _, t := range g.SparseInitializers {
		constants.by("a sparse initializer", t.Name())
	}
	for name, what := range constants.things {
		if values.things[name] == "" { // else it is the input's default
			values.by(what, name)
		}
	}
	for _, v := range g.Outputs {
		outputs.by("an output of the graph", v.Name)
	}
	values.madeBy(g.Nodes)
	return cmp.Or(constants.double, values.double, outputs.double, checkDoublesOf(g.Nodes))
}

func (f *Function) checkDoubles() error {
	values, outputs, attributes, sets := taken{}, taken{}, taken{}, taken{}
	values.by("an input", f.Inputs...)
	values.madeBy(f.Nodes)
	outputs.by("an output of the function", f.Outputs...)
	attributes.by("an attribute", f.AttributeNames...)
	attributes.attributes(f.Attributes)
	sets.opsets(f.Opsets)
	return cmp.Or(values.double, outputs.double, attributes.double, sets.double, checkDoublesOf(f.Nodes))
}

// checkDoublesOf checks the attributes of nodes, and the graphs inside them.
func checkDoublesOf(nodes []*Node) error {
	for i, n := range nodes {
		attributes := taken{}
		if attributes.attributes(n.Attributes); attributes.double != nil {
			return fmt.Errorf("%s: %w", n.place(i), attributes.double)
		}
		for sub := range n.Subgraphs() {
			if err := sub.checkDoubles(); err != nil {
				return fmt.Errorf("in a graph of %s: %w", n.place(i), err)
			}
		}
	}
	return nil
}

// taken says which names are taken, and by what.
type taken struct {
	things map[string]string
	double error // about the first name that was taken before
}

// by notes that a thing of this kind has each of the names.
func (t *taken) by(what string, names ...string) {
	for _, name := range names {
		if name == "" {
			continue // an output that is left out
		}
		if other := t.things[name]; other != "" && t.double == nil {
			second := what
			if other == what {
				second = "another"
			}
			t.double = fmt.Errorf("%s and %s have the name %q: %w", other, second, short.Name(name), errDouble)
		}
		if t.things == nil {
			t.things = map[string]string{}
		}
		t.things[name] = what
	}
}

func (t *taken) madeBy(nodes []*Node) {
	for _, n := range nodes {
		t.by("an output of a node", n.Outputs...)
	}
}

func (t *taken) attributes(list []*Attribute) {
	for _, a := range list {
		t.by("an attribute", a.Name)
	}
}

func (t *taken) opsets(list []Opset) {
	for _, o := range list {
		t.by("an operator set", cmp.Or(standard(o.Domain), "ai.onnx"))
	}
}
