package eval

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// skeleton is a copy of the graph with the same shapes and without the weights: products
// with weights and large constants become zeros of their shape, made at run time.
type skeleton struct {
	graph  *graph.Graph
	nodes  []*onnx.Node // that stand in for large constants
	consts []*onnx.Tensor
	needed map[*onnx.Node]bool // the graph's nodes that it has
	seen   map[string]bool     // the graph's values that it has

	residuals map[*onnx.Node]string // sums that it has as values of the shape of one operand; nil in a whole skeleton
}

func newSkeleton(g *graph.Graph) *skeleton {
	return &skeleton{graph: g, needed: map[*onnx.Node]bool{}, seen: map[string]bool{}}
}

// need adds a value and all that it is computed from.
func (s *skeleton) need(value string) {
	s.graph.Upstream([]string{value}, func(v string, n *onnx.Node) []string {
		if s.seen[v] {
			return nil
		}
		s.seen[v] = true
		if t := s.graph.Constants[v]; t != nil {
			s.constant(v, t)
			return nil
		}
		if n == nil {
			return nil
		}
		s.needed[n] = true
		if _, reads := s.replacement(n); reads != nil {
			return reads
		}
		return ir.Reads(n)
	})
}

// blocked returns the nodes that the skeleton cannot have, with the reason: those that
// must not be run, and those that read what these make.
func (s *skeleton) blocked() map[*onnx.Node]error {
	blocked := map[*onnx.Node]error{}
	for _, n := range s.graph.Nodes {
		_, reads := s.replacement(n)
		if reads == nil {
			if err := s.graph.Evaluable(n); err != nil {
				blocked[n] = err
				continue
			}
			reads = slices.Collect(ir.Uses(n))
		}
		for _, v := range reads {
			if err := blocked[s.graph.Producer[v]]; err != nil {
				blocked[n] = err
			}
		}
	}
	return blocked
}

// constant adds a constant under a name, or the nodes that make zeros of its shape.
func (s *skeleton) constant(name string, t *onnx.Tensor) {
	if t.Len() <= graph.MaxKept && !graph.Absent(t) || !ir.IsFloat(t.Type) && !graph.Quantised(t.Type) {
		c := t.Clone()
		c.Name = name
		s.consts = append(s.consts, c)
		return
	}
	dims := name + "/rope-rewrite/shape"
	s.consts = append(s.consts, ir.Int64Tensor(dims, []int64{int64(len(t.Dims))}, t.Dims...))
	s.nodes = append(s.nodes, ir.Zeros(t.Type, dims, name))
}

// replacement returns a function that makes nodes for zeros in the shape of n's output,
// and what these nodes read; both are nil when n stays as it is.
func (s *skeleton) replacement(n *onnx.Node) (nodes func() []*onnx.Node, reads []string) {
	if n.Domain == customop.Domain && len(n.Inputs) > 0 {
		if spec, _ := customop.SpecOf(n.OpType); spec.Name == customop.RotaryAttentionSpec.Name { // the op of an earlier rewrite
			return func() []*onnx.Node { return s.attend(n) }, n.Inputs[:1]
		}
	}
	if x := s.residuals[n]; x != "" {
		return func() []*onnx.Node { return []*onnx.Node{onnx.NewNode("Identity", []string{x}, n.Outputs[:1])} }, []string{x}
	}
	p := s.graph.Projection(n)
	if p == nil {
		return nil, nil
	}
	return func() []*onnx.Node { return s.project(n, p.From, 0, p.To, p.Width, p.Element) }, []string{p.From}
}

// after makes the nodes of project wait for dims: these become an empty part of the
// shape that project computes. Otherwise ONNX Runtime would compute dims last of all,
// and keep until then every value whose shape they are: gigabytes in a model of eighty
// layers.
func (s *skeleton) after(dims []string, product []*onnx.Node) []*onnx.Node {
	if len(dims) == 0 {
		return product
	}
	shape := product[len(product)-2]
	name := func(part string) string { return fmt.Sprintf("%s/%s", shape.Outputs[0], part) }
	s.consts = append(s.consts, ir.Int64Tensor(name("none"), []int64{1}, 0))
	shape.Inputs = append(shape.Inputs, name("nothing"))
	return append([]*onnx.Node{
		onnx.NewNode("Concat", dims, []string{name("dims")}, onnx.IntAttr("axis", 0)),
		onnx.NewNode("Slice", []string{name("dims"), name("none"), name("none")}, []string{name("nothing")}),
	}, product...)
}

// attend returns nodes that make the output of the fused op n as zeros of its query's shape.
func (s *skeleton) attend(n *onnx.Node) []*onnx.Node {
	name := func(part string) string { return fmt.Sprintf("%s/rope-rewrite/%s", n.Outputs[0], part) }
	return []*onnx.Node{
		onnx.NewNode("Shape", n.Inputs[:1], []string{name("like")}),
		onnx.NewNode("Concat", []string{name("like")}, []string{name("shape")}, onnx.IntAttr("axis", 0)),
		ir.Zeros(s.graph.Element(n.Inputs[0]), name("shape"), n.Outputs[0]),
	}
}

// project returns nodes that make n's output as zeros of shape(like)[from:to] + [width].
func (s *skeleton) project(n *onnx.Node, like string, from, to, width int64, t onnx.DataType) []*onnx.Node {
	out := n.Outputs[0]
	name := func(part string) string { return fmt.Sprintf("%s/rope-rewrite/%s", out, part) }
	s.consts = append(s.consts,
		ir.Int64Tensor(name("from"), []int64{1}, from),
		ir.Int64Tensor(name("to"), []int64{1}, to),
		ir.Int64Tensor(name("width"), []int64{1}, width))
	return []*onnx.Node{
		onnx.NewNode("Shape", []string{like}, []string{name("like")}),
		onnx.NewNode("Slice", []string{name("like"), name("from"), name("to")}, []string{name("front")}),
		onnx.NewNode("Concat", []string{name("front"), name("width")}, []string{name("shape")}, onnx.IntAttr("axis", 0)),
		ir.Zeros(t, name("shape"), out),
	}
}

// model returns the skeleton as a model. Its outputs are the shapes of values, and
// shapes, which are outputs of Shape nodes.
func (s *skeleton) model(values, shapes []string) *onnx.Model {
	g := s.graph
	m := ir.EmptyModel(g.Model)
	wanted := map[string]bool{}
	for _, v := range values {
		wanted[v] = true
	}
	nodes := slices.Clone(s.nodes) // those that stand in for constants
	var asked []string             // shapes that no node waits for yet
	ask := func(v string) {
		if wanted[v] {
			nodes = append(nodes, onnx.NewNode("Shape", []string{v}, []string{v + dimsSuffix}))
			asked = append(asked, v+dimsSuffix)
			delete(wanted, v)
		}
	}
	for _, v := range values {
		if g.Producer[v] == nil {
			ask(v)
		}
	}
	for _, n := range g.Nodes {
		if !s.needed[n] {
			continue
		}
		if make, _ := s.replacement(n); make != nil {
			made := make()
			if s.residuals[n] == "" { // which has no shape to wait with
				made, asked = s.after(asked, made), nil
			}
			nodes = append(nodes, made...)
		} else {
			nodes = append(nodes, n)
		}
		for _, v := range n.Outputs {
			ask(v)
		}
	}
	m.Graph.Nodes = nodes
	m.Graph.Initializers = s.consts
	for _, v := range g.Model.Graph.Inputs {
		if g.Inputs[v.Name] != nil && s.seen[v.Name] {
			m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: v.Name, Type: v.Type})
		}
	}
	for _, v := range values {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: v + dimsSuffix, Type: onnx.Int64})
	}
	for _, v := range shapes {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: v, Type: onnx.Int64})
	}
	return m
}
