package rewrite

import (
	"errors"
	"fmt"
	"io/fs"
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

// maxKept is the number of elements up to which a constant of floats or of
// quantised weights is kept; a larger one is replaced by zeros, which need no
// bytes in the model.
const maxKept = 1024

// quantised reports whether weights have this type, and sizes and indices never.
func quantised(t onnx.DataType) bool { return t == onnx.Uint8 || t == onnx.Int8 }

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
	if t.Len() <= maxKept && !absent(t) || !isFloat(t.Type) && !quantised(t.Type) {
		c := t.Clone()
		c.Name = name
		s.consts = append(s.consts, c)
		return
	}
	dims := name + "/rope-rewrite/shape"
	s.consts = append(s.consts, int64Tensor(dims, []int64{int64(len(t.Dims))}, t.Dims...))
	s.nodes = append(s.nodes, zeros(t.Type, dims, name))
}

// absent reports whether a constant is external data that is not there: a model
// can be looked at without its weights.
func absent(t *onnx.Tensor) bool {
	_, err := t.Bytes()
	return errors.Is(err, fs.ErrNotExist)
}

// zeros is a node that makes a tensor of zeros whose shape is a value.
func zeros(t onnx.DataType, shape, output string) *onnx.Node {
	zero := onnx.NewTensor("", t, []int64{1}, make([]byte, t.Size()))
	return onnx.NewNode("ConstantOfShape", []string{shape}, []string{output}, onnx.TensorAttr("value", zero))
}

// replacement returns nodes that make zeros in the shape of n's output, and
// what they read; nil when n stays as it is.
func (s *skeleton) replacement(n *onnx.Node) (nodes func() []*onnx.Node, reads []string) {
	p := s.graph.projection(n)
	if p == nil {
		return nil, nil
	}
	return func() []*onnx.Node { return s.project(n, p.from, 0, p.to, p.width, p.element) }, []string{p.from}
}

// projection is what is known of a node that makes something of each token by
// itself, with weights: its output has the shape of from, up to the dimension to,
// and width elements behind that.
type projection struct {
	from    string
	to      int64 // −1 replaces the last dimension; maxRank adds one
	width   int64
	element onnx.DataType
}

// looksUp reports whether it takes rows of a table instead of a product.
func (p *projection) looksUp() bool { return p.to == maxRank }

// projection reads a node; nil when it is none.
func (g *graph) projection(n *onnx.Node) *projection {
	of := func(from int, to, width int64, t onnx.DataType) *projection {
		return &projection{n.Inputs[from], to, width, t}
	}
	if standard(n, "Gather") && n.Int("axis", 0) == 0 {
		if dims, t := g.weightDims(n.Inputs[0]); len(dims) == 2 && (isFloat(t) || quantised(t)) && dims[0]*dims[1] > maxKept {
			return of(1, maxRank, dims[1], t)
		}
		return nil
	}
	if !g.weightProduct(n) || len(n.Inputs) < 2 || g.weight(n.Inputs[0]) {
		return nil
	}
	dims, t := g.weightDims(n.Inputs[1])
	across := n.Int("transB", 0) & 1 // the weight's dimension that the output has
	switch {
	case n.OpType == "MatMulNBits" && len(n.Inputs) > 2 && n.Int("N", 0) > 0:
		if scales := g.constants[n.Inputs[2]]; scales != nil {
			return of(0, -1, n.Int("N", 0), scales.Type)
		}
	case len(dims) != 2:
	case standard(n, "MatMul"):
		return of(0, -1, dims[1], t)
	case standard(n, "MatMulInteger"):
		return of(0, -1, dims[1], onnx.Int32)
	case n.Domain == "com.microsoft" && (n.OpType == "DynamicQuantizeMatMul" || n.OpType == "MatMulIntegerToFloat"):
		return of(0, -1, dims[1], onnx.Float)
	case standard(n, "Gemm") && n.Int("transA", 0) == 0,
		n.OpType == "FusedMatMul" && n.Int("transA", 0) == 0 && n.Int("transBatchA", 0) == 0:
		return of(0, -1, dims[1-across], t)
	}
	return nil
}

// weightDims returns the dimensions and the element type of a weight, nil where
// it is computed in a way that is not known. Nothing of it is read.
func (g *graph) weightDims(value string) ([]int64, onnx.DataType) {
	if t := g.constants[value]; t != nil {
		return t.Dims, t.Type
	}
	n := g.producer[value]
	if n == nil || len(n.Inputs) == 0 {
		return nil, onnx.Undefined
	}
	switch {
	case standard(n, "Identity"):
		return g.weightDims(n.Inputs[0])
	case standard(n, "Cast"):
		dims, _ := g.weightDims(n.Inputs[0])
		return dims, onnx.DataType(n.Int("to", 0))
	case standard(n, "DequantizeLinear") && len(n.Inputs) > 1:
		dims, _ := g.weightDims(n.Inputs[0])
		if scale := g.constants[n.Inputs[1]]; scale != nil {
			return dims, scale.Type
		}
	case standard(n, "Transpose"):
		if dims, t := g.weightDims(n.Inputs[0]); len(dims) == 2 {
			if perm := n.Ints("perm"); perm == nil || len(perm) == 2 && perm[0] == 1 {
				return []int64{dims[1], dims[0]}, t
			}
			return dims, t
		}
	}
	return nil, onnx.Undefined
}

// after makes what project returned wait for dims, as an empty part of its
// shape. ONNX Runtime would ask for them last of all and keep everything that
// they are the dims of until then: gigabytes in a model of eighty layers.
func (s *skeleton) after(dims []string, product []*onnx.Node) []*onnx.Node {
	if len(dims) == 0 {
		return product
	}
	shape := product[len(product)-2]
	name := func(part string) string { return fmt.Sprintf("%s/%s", shape.Outputs[0], part) }
	s.consts = append(s.consts, int64Tensor(name("none"), []int64{1}, 0))
	shape.Inputs = append(shape.Inputs, name("nothing"))
	return append([]*onnx.Node{
		onnx.NewNode("Concat", dims, []string{name("dims")}, onnx.IntAttr("axis", 0)),
		onnx.NewNode("Slice", []string{name("dims"), name("none"), name("none")}, []string{name("nothing")}),
	}, product...)
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
	wanted := map[string]bool{}
	for _, v := range values {
		wanted[v] = true
	}
	nodes := slices.Clone(s.nodes) // what stands in for constants
	var asked []string             // dims that nothing waits for
	ask := func(v string) {
		if wanted[v] {
			nodes = append(nodes, onnx.NewNode("Shape", []string{v}, []string{v + dimsSuffix}))
			asked = append(asked, v+dimsSuffix)
			delete(wanted, v)
		}
	}
	for _, v := range values {
		if g.producer[v] == nil {
			ask(v)
		}
	}
	for _, n := range g.nodes {
		if !s.needed[n] {
			continue
		}
		if make, _ := s.replacement(n); make != nil {
			nodes = append(nodes, s.after(asked, make())...)
			asked = nil
		} else {
			nodes = append(nodes, n)
		}
		for _, v := range n.Outputs {
			ask(v)
		}
	}
	m.Graph.Nodes = nodes
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
