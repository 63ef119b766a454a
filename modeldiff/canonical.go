package modeldiff

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// sum stands for a value, a node or a graph: two of one sum compute the same from the same inputs.
type sum [sha256.Size]byte

// canonical is what a graph computes, without what does not count: names of values inside it and of
// nodes, documentation, the order of nodes, of attributes and of weights, whether a tensor is a weight
// or a Constant node, where and in which field weights lie, weights that nothing reads. Everything
// else counts, nodes too whose outputs nothing reads.
type canonical struct {
	model  *onnx.Model
	digest *digester

	nodes   []made                  // of the model's own graph, in their order
	graph   sum                     // of the model's own graph
	values  map[string]sum          // of the model's own graph, by name
	graphs  []within                // all, those inside nodes first
	claims  map[sum][]claim         // what the file says of types and shapes of values, in all graphs
	tensors map[sum]claim           // what tensors are
	domains map[string]bool         // of nodes
	once    map[string]int          // how often the file says a name of a dimension
	weight  map[string]*onnx.Tensor // of the model's own graph
}

// within is a graph and its values by name.
type within struct {
	graph  *onnx.Graph
	values map[string]sum
}

// made is a node and what it computes.
type made struct {
	node *onnx.Node
	sum  sum
}

// claim is what a file says of the type of one value.
type claim struct {
	name  string
	value *onnx.ValueInfo
}

// canonicalise returns what a model's graph computes. The error says what makes that unclear.
func canonicalise(m *onnx.Model, d *digester) (*canonical, error) {
	c := newCanonical(m, d)
	var err error
	c.graph, err = c.ofGraph(m.Graph, nil, sum{})
	return c, err
}

// unclearError says why it is not clear what a model computes.
type unclearError struct{ error }

func unclear(format string, args ...any) error { return unclearError{fmt.Errorf(format, args...)} }

func newCanonical(m *onnx.Model, d *digester) *canonical {
	return &canonical{model: m, digest: d, claims: map[sum][]claim{}, tensors: map[sum]claim{}, domains: map[string]bool{}, once: map[string]int{}, weight: map[string]*onnx.Tensor{}}
}

// scope has the values of a graph, or of the nodes of a function, and of what is around it.
type scope struct {
	values map[string]sum // of the model's own graph, by name
	around *scope
}

func (s *scope) find(name string) (sum, bool) {
	for ; s != nil; s = s.around {
		if v, ok := s.values[name]; ok {
			return v, true
		}
	}
	return sum{}, false
}

// set gives a name to a value. A name that is there already could be read as either.
func (s *scope) set(name string, v sum) error {
	if _, there := s.find(name); there {
		return unclear("two values have the name %q", short.Name(name))
	}
	s.values[name] = v
	return nil
}

// ofGraph returns what a graph computes, at a place: that of the node that it stands in.
func (c *canonical) ofGraph(g *onnx.Graph, around *scope, place sum) (sum, error) {
	s := &scope{values: map[string]sum{}, around: around}
	own := around == nil
	w := newWriter("graph")
	w.sum(place)
	for i, v := range g.Inputs {
		w := newWriter("input")
		w.sum(place)
		w.number(i)
		if err := s.set(v.Name, w.done()); err != nil {
			return sum{}, err
		}
		c.say(s.values[v.Name], v)
	}
	w.number(len(g.Inputs))
	if err := c.weights(g, s, w); err != nil {
		return sum{}, err
	}
	var sums []sum
	for _, n := range g.Nodes {
		if t := constantOf(n); t != nil {
			v, err := c.tensor(t)
			if err != nil {
				return sum{}, err
			}
			if err := s.set(n.Outputs[0], v); err != nil {
				return sum{}, err
			}
			c.sayTensor(v, n.Outputs[0], t)
			if own {
				c.weight[n.Outputs[0]] = t
			}
			continue
		}
		v, err := c.ofNode(n, s)
		if err != nil {
			return sum{}, err
		}
		sums = append(sums, v)
		if own {
			c.nodes = append(c.nodes, made{n, v})
		}
	}
	w.number(len(g.Outputs))
	for _, v := range g.Outputs {
		value, ok := s.values[v.Name]
		if !ok {
			return sum{}, unclear("nothing makes the output %q", short.Name(v.Name))
		}
		w.sum(value)
		c.say(value, v)
	}
	for _, v := range g.ValueInfo {
		if value, ok := s.values[v.Name]; ok {
			c.say(value, v)
		}
	}
	w.sums(sums)
	c.graphs = append(c.graphs, within{g, s.values})
	if own {
		c.values = s.values
	}
	return w.done(), nil
}

// weights names the constants of a graph. Those of an input's name are what it is by default.
func (c *canonical) weights(g *onnx.Graph, s *scope, w *writer) error {
	defaults := map[string]sum{}
	add := func(name string, v sum) error {
		if _, twice := defaults[name]; !twice && slices.ContainsFunc(g.Inputs, func(in *onnx.ValueInfo) bool { return in.Name == name }) {
			defaults[name] = v
			return nil
		}
		return s.set(name, v)
	}
	for _, t := range g.Initializers {
		v, err := c.tensor(t)
		if err == nil {
			err = add(t.Name, v)
		}
		if err != nil {
			return err
		}
		c.sayTensor(v, t.Name, t)
		if s.around == nil {
			c.weight[t.Name] = t
		}
	}
	for _, t := range g.SparseInitializers {
		v, err := c.sparse(t)
		if err == nil {
			err = add(t.Values.Name, v)
		}
		if err != nil {
			return err
		}
	}
	w.number(len(defaults))
	for i, in := range g.Inputs {
		if v, ok := defaults[in.Name]; ok {
			w.number(i)
			w.sum(v)
		}
	}
	return nil
}

// constantOf is the tensor of a node that only holds one.
func constantOf(n *onnx.Node) *onnx.Tensor {
	if n.OpType != "Constant" || domain(n.Domain) != "" || len(n.Attributes) != 1 || len(n.Inputs) != 0 || len(n.Outputs) != 1 {
		return nil
	}
	return n.Tensor("value")
}

// domain is a domain under one name.
func domain(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

func (c *canonical) ofNode(n *onnx.Node, s *scope) (sum, error) {
	c.domains[domain(n.Domain)] = true
	w := newWriter("node")
	w.text(domain(n.Domain), n.OpType, n.Overload)
	inputs, outputs := trimmed(n.Inputs), trimmed(n.Outputs)
	w.number(len(inputs))
	for _, name := range inputs {
		v, ok := s.find(name)
		if name != "" && !ok {
			return sum{}, unclear("%s reads %q, which nothing before it makes", node(n), short.Name(name))
		}
		w.sum(v)
	}
	w.number(len(outputs))
	for _, name := range outputs {
		w.text(fmt.Sprint(name != ""))
	}
	place := w.done()
	attributes := slices.SortedStableFunc(slices.Values(n.Attributes), func(a, b *onnx.Attribute) int { return cmp.Compare(a.Name, b.Name) })
	w.number(len(attributes))
	for _, a := range attributes {
		v, err := c.attribute(a, s, place)
		if err != nil {
			return sum{}, err
		}
		w.sum(v)
	}
	of := w.done()
	for i, name := range outputs {
		if name == "" {
			continue
		}
		w := newWriter("output")
		w.sum(of)
		w.number(i)
		if err := s.set(name, w.done()); err != nil {
			return sum{}, err
		}
	}
	return of, nil
}

// trimmed is a list without absent values at its end.
func trimmed(list []string) []string {
	for len(list) > 0 && list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// say notes what the file says of a value.
func (c *canonical) say(value sum, v *onnx.ValueInfo) {
	c.claims[value] = append(c.claims[value], claim{v.Name, v})
	for _, d := range v.Shape {
		c.once[d.Param]++
	}
}

// sayTensor notes what a tensor is.
func (c *canonical) sayTensor(value sum, name string, t *onnx.Tensor) {
	var dims []onnx.Dim
	for _, n := range t.Dims {
		dims = append(dims, onnx.Dim{Value: n})
	}
	c.tensors[value] = claim{name, onnx.NewValueInfo(name, t.Type, dims...)}
}

// function is what a function computes.
func (c *canonical) function(f *onnx.Function) (sum, error) {
	s := &scope{values: map[string]sum{}}
	w := newWriter("function")
	w.text(domain(f.Domain), f.Name, f.Overload)
	for i, name := range f.Inputs {
		w := newWriter("parameter")
		w.number(i)
		if err := s.set(name, w.done()); err != nil {
			return sum{}, err
		}
	}
	w.number(len(f.Inputs))
	w.number(len(f.AttributeNames))
	w.text(slices.Sorted(slices.Values(f.AttributeNames))...)
	var sums, defaults []sum
	for _, a := range f.Attributes {
		v, err := c.attribute(a, s, sum{})
		if err != nil {
			return sum{}, err
		}
		defaults = append(defaults, v)
	}
	w.sums(defaults)
	used := map[string]bool{}
	for n := range (&onnx.Graph{Nodes: f.Nodes}).AllNodes() {
		used[domain(n.Domain)] = true
	}
	versions := imports(f.Opsets, used)
	w.number(len(versions))
	w.text(versions...)
	for _, n := range f.Nodes {
		v, err := c.ofNode(n, s)
		if err != nil {
			return sum{}, err
		}
		sums = append(sums, v)
	}
	w.sums(sums)
	w.number(len(f.Outputs))
	for _, name := range f.Outputs {
		v, ok := s.values[name]
		if !ok {
			return sum{}, unclear("nothing makes the output %q", short.Name(name))
		}
		w.sum(v)
	}
	var types []sum
	for _, v := range f.ValueInfo {
		w := newWriter("type")
		w.sum(s.values[v.Name])
		w.text(typeText(v))
		types = append(types, w.done())
	}
	w.sums(types)
	return w.done(), nil
}

// imports lists the versions of the operators of domains that are used.
func imports(list []onnx.Opset, used map[string]bool) (out []string) {
	for _, o := range list {
		if used[domain(o.Domain)] {
			out = append(out, fmt.Sprintf("version %d of the operators of %s", o.Version, cmp.Or(o.Domain, "ai.onnx")))
		}
	}
	slices.Sort(out)
	return out
}
