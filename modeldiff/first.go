package modeldiff

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// First is the first place in which two models do not compute the same.
type First struct {
	What string `json:"what"`

	// Ops says that the models have other nodes, or other inputs and outputs. Otherwise the same
	// nodes read other values, or have other attributes or weights.
	Ops bool `json:"other_ops"`
}

// Compare returns the first place in which two models do not compute the same, nil where there is
// none. Names of values inside the graph, names of nodes, their documentation and the places of weights
// may differ. say is told the bytes of weights that were read; an error from it ends the comparison.
func Compare(a, b *onnx.Model, say func(read int64) error) (*First, error) {
	c := &comparison{
		models: [2]*onnx.Model{a, b},
		digest: digester{say: say, digests: map[*onnx.Tensor][sha256.Size]byte{}},
	}
	if first := c.ops(a.Graph, b.Graph); first != nil {
		return first, nil
	}
	first := c.graph(a.Graph, b.Graph, scope{names: map[string]string{}, taken: map[string]bool{}})
	if first == nil {
		first = c.opsets(func(string) bool { return true })
	}
	if first == nil {
		first = c.functions()
	}
	return first, c.err
}

type comparison struct {
	models [2]*onnx.Model
	digest digester
	err    error // of reading weights
}

// scope is what is known of names: those of B by those of A, and the initializers of both.
type scope struct {
	names   map[string]string
	taken   map[string]bool // of B
	weights [2]map[string]*onnx.Tensor
}

func (s scope) inner(a, b *onnx.Graph) scope {
	in := scope{names: maps.Clone(s.names), taken: maps.Clone(s.taken)}
	for i, g := range []*onnx.Graph{a, b} {
		in.weights[i] = maps.Clone(s.weights[i])
		if in.weights[i] == nil {
			in.weights[i] = map[string]*onnx.Tensor{}
		}
		for _, t := range g.Initializers {
			in.weights[i][t.Name] = t
		}
	}
	return in
}

// pair notes that two names are of the same value, and reports whether they can be.
func (s scope) pair(a, b string) bool {
	if known, ok := s.names[a]; ok || s.taken[b] {
		return known == b && ok
	}
	if a == "" || b == "" {
		return a == b
	}
	s.names[a], s.taken[b] = b, true
	return true
}

// ops compares which nodes there are, in their order, and the graph's inputs and outputs.
func (c *comparison) ops(a, b *onnx.Graph) *First {
	for i := range max(len(a.Nodes), len(b.Nodes)) {
		switch {
		case i >= len(a.Nodes):
			return &First{Ops: true, What: fmt.Sprintf("%s is unexpected", node(b.Nodes[i]))}
		case i >= len(b.Nodes):
			return &First{Ops: true, What: fmt.Sprintf("%s is missing", node(a.Nodes[i]))}
		}
		if x, y := a.Nodes[i], b.Nodes[i]; op(x) != op(y) {
			return &First{Ops: true, What: fmt.Sprintf("%s is in the place of %s", node(y), node(x))}
		}
	}
	for _, list := range [][2][]*onnx.ValueInfo{{a.Inputs, b.Inputs}, {a.Outputs, b.Outputs}} {
		was, is := valueNames(list[0]), valueNames(list[1])
		if !slices.Equal(slices.Sorted(slices.Values(was)), slices.Sorted(slices.Values(is))) {
			return &First{Ops: true, What: "its inputs or outputs differ"}
		}
		for i := range was {
			if was[i] != is[i] {
				return &First{What: fmt.Sprintf("%q is in the place of %q among its inputs or outputs", short.Name(is[i]), short.Name(was[i]))}
			}
		}
	}
	return nil
}

func valueNames(list []*onnx.ValueInfo) (names []string) {
	for _, v := range list {
		names = append(names, v.Name)
	}
	return names
}

func op(n *onnx.Node) [3]string {
	domain := n.Domain
	if domain == "ai.onnx" {
		domain = ""
	}
	return [3]string{domain, n.OpType, n.Overload}
}

func node(n *onnx.Node) string { return fmt.Sprintf("%s %q", short.Name(n.OpType), short.Name(n.Name)) }

// graph compares graphs of the same nodes.
func (c *comparison) graph(a, b *onnx.Graph, around scope) *First {
	if !slices.EqualFunc(a.SparseInitializers, b.SparseInitializers, c.sparse) {
		return &First{What: "its sparse initializers differ"}
	}
	s := around.inner(a, b)
	for i := range a.Inputs {
		s.pair(a.Inputs[i].Name, b.Inputs[i].Name)
	}
	for i := range a.Nodes {
		if first := c.node(a.Nodes[i], b.Nodes[i], s); first != nil || c.err != nil {
			return first
		}
	}
	for i := range a.Outputs {
		if !c.same(a.Outputs[i].Name, b.Outputs[i].Name, s) {
			return &First{What: fmt.Sprintf("the output %q comes from a different node", short.Name(b.Outputs[i].Name))}
		}
	}
	return nil
}

// same reports whether two names are of the same value: of one that was met before, or of weights
// that hold the same.
func (c *comparison) same(a, b string, s scope) bool {
	x, y := s.weights[0][a], s.weights[1][b]
	if _, met := s.names[a]; met || x == nil || y == nil {
		return s.pair(a, b)
	}
	return c.contents(x, y) && s.pair(a, b)
}

func (c *comparison) contents(a, b *onnx.Tensor) bool {
	same, err := c.digest.same(constant{c.models[0], a, a.Name}, constant{c.models[1], b, b.Name})
	if err != nil && !unreadable(err) && c.err == nil {
		c.err = err
	}
	return same || unreadable(err) // what neither has cannot differ
}

func (c *comparison) node(a, b *onnx.Node, s scope) *First {
	if len(a.Inputs) != len(b.Inputs) || len(a.Outputs) != len(b.Outputs) {
		return &First{What: fmt.Sprintf("%s has %d inputs and %d outputs, not %d and %d", node(b), len(b.Inputs), len(b.Outputs), len(a.Inputs), len(a.Outputs))}
	}
	for i := range a.Inputs {
		if c.same(a.Inputs[i], b.Inputs[i], s) {
			continue
		}
		if t := s.weights[1][b.Inputs[i]]; t != nil && s.weights[0][a.Inputs[i]] != nil {
			return &First{What: fmt.Sprintf("%s reads the weight %q, which has different numbers", node(b), short.Name(t.Name))}
		}
		return &First{What: fmt.Sprintf("%s reads %q as its input %d, which is a different value", node(b), short.Name(b.Inputs[i]), i)}
	}
	if first := c.attributes(a, b, s); first != nil {
		return first
	}
	for i := range a.Outputs {
		if !s.pair(a.Outputs[i], b.Outputs[i]) {
			return &First{What: fmt.Sprintf("%s makes %q, which another node makes in the expected graph", node(b), short.Name(b.Outputs[i]))}
		}
	}
	return nil
}

func (c *comparison) attributes(a, b *onnx.Node, s scope) *First {
	names := map[string]bool{}
	for _, list := range [][]*onnx.Attribute{a.Attributes, b.Attributes} {
		for _, x := range list {
			names[x.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, y := a.Attribute(name), b.Attribute(name)
		if x == nil || y == nil || !c.attribute(x, y, s) {
			return &First{What: fmt.Sprintf("%s differs in %s%s", node(b), short.Name(name), numbers(x, y))}
		}
	}
	return nil
}

// numbers are those of two attributes, where they are short.
func numbers(x, y *onnx.Attribute) string {
	show := func(a *onnx.Attribute) string {
		switch {
		case a == nil:
			return "none"
		case a.Type == onnx.AttrFloat:
			return fmt.Sprint(a.Float)
		case a.Type == onnx.AttrInt:
			return fmt.Sprint(a.Int)
		case a.Type == onnx.AttrString:
			return fmt.Sprintf("%q", short.Name(string(a.Bytes)))
		case a.Type == onnx.AttrFloats && y != nil && x != nil && len(x.Floats) == len(y.Floats):
			i := 0
			for i < len(x.Floats)-1 && x.Floats[i] == y.Floats[i] {
				i++
			}
			return fmt.Sprintf("%v at %d", a.Floats[i], i)
		}
		return ""
	}
	was, is := show(x), show(y)
	if was == "" || is == "" {
		return ""
	}
	return fmt.Sprintf(": %s instead of %s", is, was)
}

func (c *comparison) attribute(a, b *onnx.Attribute, s scope) bool {
	if a.Type != b.Type || a.RefName != b.RefName {
		return false
	}
	float := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	switch a.Type {
	case onnx.AttrFloat:
		return float(a.Float, b.Float)
	case onnx.AttrInt:
		return a.Int == b.Int
	case onnx.AttrString:
		return slices.Equal(a.Bytes, b.Bytes)
	case onnx.AttrFloats:
		return slices.EqualFunc(a.Floats, b.Floats, float)
	case onnx.AttrInts:
		return slices.Equal(a.Ints, b.Ints)
	case onnx.AttrStrings:
		return slices.EqualFunc(a.Strings, b.Strings, slices.Equal[[]byte])
	case onnx.AttrTensor:
		return c.contents(a.Tensor, b.Tensor)
	case onnx.AttrTensors:
		return slices.EqualFunc(a.Tensors, b.Tensors, c.contents)
	case onnx.AttrGraph:
		return c.inside(a.Graph, b.Graph, s)
	case onnx.AttrGraphs:
		return slices.EqualFunc(a.Graphs, b.Graphs, func(x, y *onnx.Graph) bool { return c.inside(x, y, s) })
	case onnx.AttrSparseTensor:
		return c.sparse(a.SparseTensor, b.SparseTensor)
	case onnx.AttrSparseTensors:
		return slices.EqualFunc(a.SparseTensors, b.SparseTensors, c.sparse)
	}
	return true // types, which no rewrite changes
}

// sparse compares sparse constants as they are written: in another order of elements they count as different.
func (c *comparison) sparse(a, b *onnx.SparseTensor) bool {
	return a.Name() == b.Name() && slices.Equal(a.Dims, b.Dims) && a.Values != nil && b.Values != nil && c.contents(a.Values, b.Values) &&
		a.Indices != nil && b.Indices != nil && c.contents(a.Indices, b.Indices)
}

// inside compares the graphs in a node.
func (c *comparison) inside(a, b *onnx.Graph, s scope) bool {
	return c.ops(a, b) == nil && c.graph(a, b, s) == nil
}

// opsets compares the versions of the operators of some domains.
func (c *comparison) opsets(some func(domain string) bool) *First {
	var lists [2]map[string]string
	for i, m := range c.models {
		lists[i] = map[string]string{}
		for _, o := range opsets(m) {
			lists[i][o.name] = o.text
		}
	}
	domains := maps.Clone(lists[0])
	maps.Copy(domains, lists[1])
	for _, domain := range slices.Sorted(maps.Keys(domains)) {
		if was, is := lists[0][domain], lists[1][domain]; was != is && some(domain) {
			return &First{What: fmt.Sprintf("it uses version %s of the operators of %s instead of %s", cmp.Or(is, "none"), domain, cmp.Or(was, "none"))}
		}
	}
	return nil
}

// functions compares the functions of both models by their names: what a rewrite wrote byte for byte,
// the model's own by what they compute.
func (c *comparison) functions() *First {
	type key struct{ domain, name, overload string }
	byName := map[key]*onnx.Function{}
	for _, f := range c.models[1].Functions {
		byName[key{f.Domain, f.Name, f.Overload}] = f
	}
	for _, f := range c.models[0].Functions {
		k := key{f.Domain, f.Name, f.Overload}
		g := byName[k]
		delete(byName, k)
		fallback := f.Domain == customop.Domain
		switch {
		case g == nil && fallback:
			return &First{What: fmt.Sprintf("the fallback %s was removed", short.Name(f.Name))}
		case g == nil:
			return &First{Ops: true, What: fmt.Sprintf("the function %s is missing", short.Name(f.Name))}
		case fallback && f.Digest() != g.Digest():
			return &First{What: fmt.Sprintf("the fallback %s is different", short.Name(f.Name))}
		case !fallback && !c.function(f, g):
			return &First{What: fmt.Sprintf("the function %s computes something else", short.Name(f.Name))}
		}
	}
	for _, f := range c.models[1].Functions {
		if byName[key{f.Domain, f.Name, f.Overload}] == nil {
			continue
		}
		if f.Domain == customop.Domain {
			return &First{What: fmt.Sprintf("the fallback %s was added", short.Name(f.Name))}
		}
		return &First{Ops: true, What: fmt.Sprintf("the function %s is unexpected", short.Name(f.Name))}
	}
	return nil
}

// function reports whether two functions compute the same.
func (c *comparison) function(f, g *onnx.Function) bool {
	x, y := &onnx.Graph{Nodes: f.Nodes}, &onnx.Graph{Nodes: g.Nodes}
	s := scope{names: map[string]string{}, taken: map[string]bool{}}
	if !slices.Equal(f.Opsets, g.Opsets) || len(f.Inputs) != len(g.Inputs) || len(f.Outputs) != len(g.Outputs) ||
		!slices.Equal(f.AttributeNames, g.AttributeNames) || len(f.Attributes) != len(g.Attributes) || c.ops(x, y) != nil {
		return false
	}
	for i, a := range f.Attributes {
		if a.Name != g.Attributes[i].Name || !c.attribute(a, g.Attributes[i], s) {
			return false
		}
	}
	for i := range f.Inputs {
		s.pair(f.Inputs[i], g.Inputs[i])
	}
	s = s.inner(x, y)
	for i := range x.Nodes {
		if c.node(x.Nodes[i], y.Nodes[i], s) != nil {
			return false
		}
	}
	for i := range f.Outputs {
		if !s.pair(f.Outputs[i], g.Outputs[i]) {
			return false
		}
	}
	return true
}
