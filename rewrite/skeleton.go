package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// skeleton is a copy of the graph that keeps every shape and none of the
// weights: products with weights and large constants become zeros of their
// shape, made at run time.
type skeleton struct {
	graph  *graph
	nodes  []*onnx.Node
	consts []*onnx.Tensor
	needed map[*onnx.Node]bool
	seen   map[string]bool
}

// maxKept is the number of elements up to which a float constant is kept; a
// larger one is replaced by zeros, which need no bytes in the model.
const maxKept = 1024

func newSkeleton(g *graph) *skeleton {
	return &skeleton{graph: g, needed: map[*onnx.Node]bool{}, seen: map[string]bool{}}
}

// need marks what the value is made of.
func (s *skeleton) need(value string) {
	s.graph.upstream([]string{value}, func(v string, n *onnx.Node) []string {
		if s.seen[v] {
			return nil
		}
		s.seen[v] = true
		if t := s.graph.constants[v]; t != nil {
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
		return reads(n)
	})
}

// blocked returns the nodes that the skeleton cannot hold, with the reason:
// those that must not be evaluated and what needs them.
func (s *skeleton) blocked() map[*onnx.Node]error {
	blocked := map[*onnx.Node]error{}
	for _, n := range s.graph.nodes {
		_, reads := s.replacement(n)
		if reads == nil {
			if err := s.graph.evaluable(n); err != nil {
				blocked[n] = err
				continue
			}
			reads = slices.Collect(uses(n))
		}
		for _, v := range reads {
			if err := blocked[s.graph.producer[v]]; err != nil {
				blocked[n] = err
			}
		}
	}
	return blocked
}

func (s *skeleton) constant(name string, t *onnx.Tensor) {
	if !isFloat(t.Type) || t.Len() <= maxKept {
		c := t.Clone()
		c.Name = name
		s.consts = append(s.consts, c)
		return
	}
	dims := name + "/rope-rewrite/shape"
	s.consts = append(s.consts, int64Tensor(dims, []int64{int64(len(t.Dims))}, t.Dims...))
	s.nodes = append(s.nodes, zeros(t.Type, dims, name))
}

// zeros is a node that makes a tensor of zeros whose shape is a value.
func zeros(t onnx.DataType, shape, output string) *onnx.Node {
	zero := onnx.NewTensor("", t, []int64{1}, make([]byte, t.Size()))
	return onnx.NewNode("ConstantOfShape", []string{shape}, []string{output}, onnx.TensorAttr("value", zero))
}

// replacement returns nodes that make zeros in the shape of n's output, and
// what they read; nil when n stays as it is.
func (s *skeleton) replacement(n *onnx.Node) (nodes func() []*onnx.Node, reads []string) {
	g := s.graph
	if standard(n, "MatMul") && g.weightProduct(n) && !g.weight(n.Inputs[0]) {
		if w := g.constants[n.Inputs[1]]; w != nil && len(w.Dims) == 2 {
			return func() []*onnx.Node { return s.project(n, n.Inputs[0], 0, -1, w.Dims[1], w.Type) }, n.Inputs[:1]
		}
	}
	if standard(n, "Gemm") && n.Int("transA", 0) == 0 && !g.weight(n.Inputs[0]) {
		if w := g.constants[n.Inputs[1]]; w != nil && len(w.Dims) == 2 {
			width := w.Dims[1-n.Int("transB", 0)]
			return func() []*onnx.Node { return s.project(n, n.Inputs[0], 0, -1, width, w.Type) }, n.Inputs[:1]
		}
	}
	if n.Domain == "com.microsoft" && n.OpType == "MatMulNBits" && len(n.Inputs) > 2 && !g.weight(n.Inputs[0]) {
		if scales := g.constants[n.Inputs[2]]; scales != nil && n.Int("N", 0) > 0 {
			return func() []*onnx.Node { return s.project(n, n.Inputs[0], 0, -1, n.Int("N", 0), scales.Type) }, n.Inputs[:1]
		}
	}
	if standard(n, "Gather") && n.Int("axis", 0) == 0 {
		if w := g.constants[n.Inputs[0]]; w != nil && len(w.Dims) == 2 && isFloat(w.Type) && w.Len() > maxKept {
			return func() []*onnx.Node { return s.project(n, n.Inputs[1], 0, maxRank, w.Dims[1], w.Type) }, n.Inputs[1:2]
		}
	}
	return nil, nil
}

// project makes zeros of shape(like)[from:to] + [width].
func (s *skeleton) project(n *onnx.Node, like string, from, to, width int64, t onnx.DataType) []*onnx.Node {
	out := n.Outputs[0]
	name := func(part string) string { return fmt.Sprintf("%s/rope-rewrite/%s", out, part) }
	s.consts = append(s.consts,
		int64Tensor(name("from"), []int64{1}, from),
		int64Tensor(name("to"), []int64{1}, to),
		int64Tensor(name("width"), []int64{1}, width))
	return []*onnx.Node{
		onnx.NewNode("Shape", []string{like}, []string{name("like")}),
		onnx.NewNode("Slice", []string{name("like"), name("from"), name("to")}, []string{name("front")}),
		onnx.NewNode("Concat", []string{name("front"), name("width")}, []string{name("shape")}, onnx.IntAttr("axis", 0)),
		zeros(t, name("shape"), out),
	}
}

// model assembles the skeleton, with the dims of values and the outputs of
// Shape nodes as its outputs.
func (s *skeleton) model(values, shapes []string) *onnx.Model {
	g := s.graph
	m := emptyModel(g.model)
	var body []*onnx.Node
	for _, n := range g.nodes {
		if !s.needed[n] {
			continue
		}
		if make, _ := s.replacement(n); make != nil {
			body = append(body, make()...)
		} else {
			body = append(body, n)
		}
	}
	// What stands in for constants goes first, the questions for dims last.
	var front, back []*onnx.Node
	for _, n := range s.nodes {
		if n.OpType == "ConstantOfShape" {
			front = append(front, n)
		} else {
			back = append(back, n)
		}
	}
	m.Graph.Nodes = append(append(front, body...), back...)
	m.Graph.Initializers = s.consts
	for _, v := range g.model.Graph.Inputs {
		if g.inputs[v.Name] != nil && s.seen[v.Name] {
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
