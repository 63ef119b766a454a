package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// maxInlined bounds the nodes that functions may grow to: forty functions that
// each call the next one twice would be a million million.
const maxInlined = 1 << 17

// maxCalls bounds how deep functions may call one another.
const maxCalls = 32

// Inlined is a call of a function that was replaced by the function's body.
type Inlined struct {
	Graph *Graph  // that the call was in
	Call  *Node   // the node that was taken out
	Nodes []*Node // the nodes that replace it; calls within them are replaced too
}

// Inline replaces every node that calls one of these functions by the function's
// body, in the model's graph and the graphs inside its nodes. Values and nodes of a
// body get new names that begin with the call's. It returns the calls in the order
// of the graph; those inside a body are part of the outer one.
//
// The functions are the model's own, m.Functions or some of them, and stay there. On
// an error (a function that calls itself, or is written against another operator set
// than the model) the model is unchanged.
func (m *Model) Inline(functions []*Function) ([]Inlined, error) {
	if len(functions) == 0 {
		return nil, nil
	}
	in := &inliner{model: m, functions: functions, names: Names{}, graphs: map[*Graph][]*Node{}}
	in.names.Note(m.Graph)
	if err := in.graph(m.Graph, nil); err != nil {
		return nil, err
	}
	for g, nodes := range in.graphs {
		g.Nodes = nodes
	}
	return in.calls, nil
}

type inliner struct {
	model     *Model
	functions []*Function // whose calls are replaced
	names     Names
	graphs    map[*Graph][]*Node
	calls     []Inlined
	made      int
}

// function returns the function whose body takes the place of a node, nil where the node stays.
func (in *inliner) function(n *Node) *Function {
	for _, f := range in.functions {
		if f.Name == n.OpType && standard(f.Domain) == standard(n.Domain) && f.Overload == n.Overload {
			return f
		}
	}
	return nil
}

// graph notes what a graph's nodes become. within lists the functions that it is
// a part of the bodies of.
func (in *inliner) graph(g *Graph, within []*Function) error {
	var nodes []*Node
	called := false
	for _, n := range g.Nodes {
		for sub := range n.Subgraphs() {
			if err := in.graph(sub, within); err != nil {
				return err
			}
		}
		f := in.function(n)
		if f == nil {
			nodes = append(nodes, n)
			continue
		}
		body, err := in.body(n, f, within)
		if err != nil {
			return err
		}
		called = true
		nodes = append(nodes, body...)
		if len(within) == 0 {
			in.calls = append(in.calls, Inlined{Graph: g, Call: n, Nodes: body})
		}
	}
	if called {
		in.graphs[g] = nodes
	}
	return nil
}

// body returns the nodes of a function as they stand in the place of a call.
func (in *inliner) body(call *Node, f *Function, within []*Function) ([]*Node, error) {
	fail := func(err error) error { return fmt.Errorf("the function %s: %w", short.Name(f.Name), err) }
	if err := in.callable(call, f, within); err != nil {
		return nil, fail(err)
	}
	within = append(slices.Clone(within), f)
	e, passed := in.expand(call, f)
	var nodes []*Node
	for _, b := range f.Nodes {
		n, err := e.node(b)
		if err != nil {
			return nil, fail(err)
		}
		for sub := range n.Subgraphs() {
			if err := in.graph(sub, within); err != nil {
				return nil, err
			}
		}
		inner := in.function(n)
		if inner == nil {
			nodes = append(nodes, n)
			continue
		}
		more, err := in.body(n, inner, within)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, more...)
	}
	for i, v := range f.Outputs {
		if i < len(call.Outputs) && call.Outputs[i] != "" && !e.given[v] {
			return nil, fail(fmt.Errorf("no node makes its output %q", short.Name(v)))
		}
	}
	return append(nodes, passed...), nil
}

// callable says why a function cannot stand in the place of a call, if it cannot.
func (in *inliner) callable(call *Node, f *Function, within []*Function) error {
	if slices.Contains(within, f) {
		return errors.New("it calls itself")
	}
	if len(within) == maxCalls {
		return fmt.Errorf("functions call one another more than %d deep", maxCalls)
	}
	for _, o := range f.Opsets {
		if have := in.model.Opset(o.Domain); have != o.Version && (have != 0 || in.uses(f, o.Domain)) {
			return fmt.Errorf("it uses version %d of the operator set %q, but the model uses %d", o.Version, short.Name(o.Domain), have)
		}
	}
	if len(call.Inputs) > len(f.Inputs) || len(call.Outputs) > len(f.Outputs) {
		return fmt.Errorf("node %q gives it %d inputs and takes %d outputs, but it has %d and %d", short.Name(call.Name), len(call.Inputs), len(call.Outputs), len(f.Inputs), len(f.Outputs))
	}
	return nil
}

// expansion is the body of a function on its way into the place of a call.
type expansion struct {
	*inliner
	call    *Node
	f       *Function
	stem    string            // of the names that its nodes and values get
	renamed map[string]string // its values, as the graph knows them; "" for what the call leaves out
	given   map[string]bool   // what its nodes can read already
}

// expand begins an expansion: inputs and outputs of the function get the names
// of the call's. passed are Identity nodes, for outputs that are inputs.
func (in *inliner) expand(call *Node, f *Function) (e *expansion, passed []*Node) {
	e = &expansion{inliner: in, call: call, f: f, stem: cmp.Or(call.Name, call.OpType), renamed: map[string]string{"": ""}, given: map[string]bool{}}
	for i, v := range f.Inputs {
		e.given[v] = true
		e.renamed[v] = ""
		if i < len(call.Inputs) {
			e.renamed[v] = call.Inputs[i]
		}
	}
	for i, v := range f.Outputs {
		if i >= len(call.Outputs) || call.Outputs[i] == "" {
			continue
		}
		if from, given := e.renamed[v]; given {
			passed = append(passed, NewNode("Identity", []string{from}, []string{call.Outputs[i]}))
			continue
		}
		e.renamed[v] = call.Outputs[i]
	}
	return e, passed
}

// node returns a node of the body as it stands in the graph.
func (e *expansion) node(b *Node) (*Node, error) {
	if e.made++; e.made > maxInlined {
		return nil, fmt.Errorf("inlined, the functions have more than %d nodes", maxInlined)
	}
	n := b.Clone()
	if b.Name != "" {
		n.Name = e.names.Fresh(e.stem + "/" + b.Name)
	}
	for i, v := range b.Inputs {
		if v != "" && !e.given[v] {
			return nil, fmt.Errorf("its node %q reads %q, which nothing before it makes", short.Name(b.Name), short.Name(v))
		}
		n.Inputs[i] = e.renamed[v]
	}
	if err := e.resolve(n, e.renamed); err != nil {
		return nil, err
	}
	for i, v := range b.Outputs {
		if e.renamed[v] == "" && v != "" {
			e.renamed[v] = e.names.Fresh(e.stem + "/" + v)
		}
		n.Outputs[i] = e.renamed[v]
		e.given[v] = true
	}
	return n, nil
}

// uses reports whether a function's nodes are of a domain.
func (in *inliner) uses(f *Function, domain string) bool {
	return slices.ContainsFunc(f.Nodes, func(n *Node) bool { return standard(n.Domain) == standard(domain) && in.function(n) == nil })
}

// attribute returns what an attribute of the body that refers to one of the
// function stands for in a call, nil when it has no value there.
func (f *Function) attribute(call *Node, a *Attribute) *Attribute {
	if given := call.Attribute(a.RefName); given != nil {
		return given
	}
	for _, d := range f.Attributes {
		if d.Name == a.RefName {
			return d
		}
	}
	return nil
}

// resolve gives a node's attributes the values of a call, none to those that it
// leaves out, and the values of the graphs inside it names of their own.
func (e *expansion) resolve(n *Node, names map[string]string) error {
	n.Attributes = slices.DeleteFunc(n.Attributes, func(a *Attribute) bool { return a.RefName != "" && e.f.attribute(e.call, a) == nil })
	for i, a := range n.Attributes {
		if a.RefName != "" {
			value := e.f.attribute(e.call, a).Clone()
			value.Name = a.Name
			n.Attributes[i] = value
			continue
		}
		for _, g := range append(slices.Clone(a.Graphs), a.Graph) {
			if g == nil {
				continue
			}
			if err := e.rename(g, names); err != nil {
				return err
			}
		}
	}
	return nil
}

// rename gives all that a graph inside a body makes new names.
func (e *expansion) rename(g *Graph, outer map[string]string) error {
	if len(g.SparseInitializers) > 0 {
		return fmt.Errorf("a graph inside it has sparse constants")
	}
	names := maps.Clone(outer)
	fresh := func(v string) string {
		names[v] = e.names.Fresh(e.stem + "/" + v)
		return names[v]
	}
	g.ValueInfo = nil
	for _, v := range g.Inputs {
		v.Name = fresh(v.Name)
	}
	for _, t := range g.Initializers {
		t.Name = fresh(t.Name)
	}
	for _, n := range g.Nodes {
		if e.made++; e.made > maxInlined {
			return fmt.Errorf("inlined, the functions have more than %d nodes", maxInlined)
		}
		for i, v := range n.Inputs {
			to, known := names[v]
			if !known {
				return fmt.Errorf("node %q inside it reads %q, which nothing before it makes", short.Name(n.Name), short.Name(v))
			}
			n.Inputs[i] = to
		}
		if n.Name != "" {
			n.Name = e.names.Fresh(e.stem + "/" + n.Name)
		}
		if err := e.resolve(n, names); err != nil {
			return err
		}
		for i, v := range n.Outputs {
			if v != "" {
				n.Outputs[i] = fresh(v)
			}
		}
	}
	for _, v := range g.Outputs {
		to, known := names[v.Name]
		if !known {
			return fmt.Errorf("a graph inside it gives %q, which nothing makes", short.Name(v.Name))
		}
		v.Name = to
	}
	return nil
}
