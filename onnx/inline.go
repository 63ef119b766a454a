package onnx

import (
	"fmt"
	"maps"
	"slices"
)

// maxInlined bounds the nodes that functions may grow to: forty functions that
// each call the next one twice would be a million million.
const maxInlined = 1 << 17

// maxCalls bounds how deep functions may call one another.
const maxCalls = 32

// Inlined is a call of a function whose body stands in its place.
type Inlined struct {
	Graph *Graph  // that the call stood in
	Call  *Node   // the node that was taken out
	Nodes []*Node // what stands there now; calls within it are replaced too
}

// Inline replaces every node that calls one of the model's own functions by the
// function's body, in the model's graph and the graphs inside its nodes. Values
// and nodes of a body get new names that begin with the call's. It returns the
// calls in the order of the graph; those inside a body are part of the outer one.
//
// The functions themselves stay in the model. On an error (a function that calls
// itself, or is written against another operator set than the model) the model is
// as it was.
func (m *Model) Inline() ([]Inlined, error) {
	if len(m.Functions) == 0 {
		return nil, nil
	}
	in := &inliner{model: m, names: map[string]bool{}, graphs: map[*Graph][]*Node{}}
	for g := range m.Graph.AllGraphs() {
		for _, v := range g.Inputs {
			in.names[v.Name] = true
		}
		for _, t := range g.Initializers {
			in.names[t.Name] = true
		}
		for _, n := range g.Nodes {
			in.names[n.Name] = true
			for _, o := range n.Outputs {
				in.names[o] = true
			}
		}
	}
	if err := in.graph(m.Graph, nil); err != nil {
		return nil, err
	}
	for g, nodes := range in.graphs {
		g.Nodes = nodes
	}
	return in.calls, nil
}

type inliner struct {
	model  *Model
	names  map[string]bool // in use
	graphs map[*Graph][]*Node
	calls  []Inlined
	made   int
}

// function returns the function that a node calls, nil if it is an operator.
func (m *Model) function(n *Node) *Function {
	for _, f := range m.Functions {
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
		f := in.model.function(n)
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
	fail := func(format string, args ...any) error {
		return fmt.Errorf("the function %s: %w", f.Name, fmt.Errorf(format, args...))
	}
	if slices.Contains(within, f) {
		return nil, fail("it calls itself")
	}
	if len(within) == maxCalls {
		return nil, fail("functions call one another more than %d deep", maxCalls)
	}
	within = append(slices.Clone(within), f)
	for _, o := range f.Opsets {
		if have := in.model.Opset(o.Domain); have != o.Version && (have != 0 || in.uses(f, o.Domain)) {
			return nil, fail("it is written against version %d of the operator set %q, the model against %d", o.Version, o.Domain, have)
		}
	}
	if len(call.Inputs) > len(f.Inputs) || len(call.Outputs) > len(f.Outputs) {
		return nil, fail("node %q gives it %d inputs and takes %d outputs, it has %d and %d", call.Name, len(call.Inputs), len(call.Outputs), len(f.Inputs), len(f.Outputs))
	}
	stem := call.Name
	if stem == "" {
		stem = call.OpType
	}
	names := map[string]string{"": ""}
	for i, v := range f.Inputs {
		names[v] = ""
		if i < len(call.Inputs) {
			names[v] = call.Inputs[i]
		}
	}
	var passed []*Node // outputs that are inputs
	for i, v := range f.Outputs {
		if i >= len(call.Outputs) || call.Outputs[i] == "" {
			continue
		}
		if from, given := names[v]; given {
			passed = append(passed, NewNode("Identity", []string{from}, []string{call.Outputs[i]}))
			continue
		}
		names[v] = call.Outputs[i]
	}
	given := map[string]bool{} // what the body can read already
	for _, v := range f.Inputs {
		given[v] = true
	}
	var nodes []*Node
	for _, b := range f.Nodes {
		if in.made++; in.made > maxInlined {
			return nil, fail("inlined, the functions have more than %d nodes", maxInlined)
		}
		n := b.Clone()
		if b.Name != "" {
			n.Name = in.fresh(stem + "/" + b.Name)
		}
		for i, v := range b.Inputs {
			if v != "" && !given[v] {
				return nil, fail("its node %q reads %q, which nothing before it makes", b.Name, v)
			}
			n.Inputs[i] = names[v]
		}
		if err := in.resolve(n, call, f, names, stem); err != nil {
			return nil, fail("%w", err)
		}
		for i, v := range b.Outputs {
			if names[v] == "" && v != "" {
				names[v] = in.fresh(stem + "/" + v)
			}
			n.Outputs[i] = names[v]
			given[v] = true
		}
		for sub := range n.Subgraphs() {
			if err := in.graph(sub, within); err != nil {
				return nil, err
			}
		}
		inner := in.model.function(n)
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
		if i < len(call.Outputs) && call.Outputs[i] != "" && !given[v] {
			return nil, fail("its output %q is made by none of its nodes", v)
		}
	}
	return append(nodes, passed...), nil
}

// uses reports whether a function's nodes are of a domain.
func (in *inliner) uses(f *Function, domain string) bool {
	return slices.ContainsFunc(f.Nodes, func(n *Node) bool { return standard(n.Domain) == standard(domain) && in.model.function(n) == nil })
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
func (in *inliner) resolve(n, call *Node, f *Function, names map[string]string, stem string) error {
	n.Attributes = slices.DeleteFunc(n.Attributes, func(a *Attribute) bool { return a.RefName != "" && f.attribute(call, a) == nil })
	for i, a := range n.Attributes {
		if a.RefName != "" {
			value := f.attribute(call, a).Clone()
			value.Name = a.Name
			n.Attributes[i] = value
			continue
		}
		for _, g := range append(slices.Clone(a.Graphs), a.Graph) {
			if g == nil {
				continue
			}
			if err := in.rename(g, call, f, names, stem); err != nil {
				return err
			}
		}
	}
	return nil
}

// rename gives all that a graph inside a body makes new names.
func (in *inliner) rename(g *Graph, call *Node, f *Function, outer map[string]string, stem string) error {
	if len(g.SparseInitializers) > 0 {
		return fmt.Errorf("a graph inside it has sparse constants")
	}
	names := maps.Clone(outer)
	fresh := func(v string) string {
		names[v] = in.fresh(stem + "/" + v)
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
		if in.made++; in.made > maxInlined {
			return fmt.Errorf("inlined, the functions have more than %d nodes", maxInlined)
		}
		for i, v := range n.Inputs {
			to, known := names[v]
			if !known {
				return fmt.Errorf("node %q inside it reads %q, which nothing before it makes", n.Name, v)
			}
			n.Inputs[i] = to
		}
		if n.Name != "" {
			n.Name = in.fresh(stem + "/" + n.Name)
		}
		if err := in.resolve(n, call, f, names, stem); err != nil {
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
			return fmt.Errorf("a graph inside it gives %q, which nothing makes", v.Name)
		}
		v.Name = to
	}
	return nil
}

// fresh returns a name that nothing has.
func (in *inliner) fresh(name string) string {
	base := name
	for i := 2; in.names[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	in.names[name] = true
	return name
}
