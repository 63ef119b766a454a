package paddingreaders

import (
	"fmt"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// standIn is a copy of the graph without its weights, in which every value depends on the
// same values as in the model. Products with weights, which work on each token by itself,
// are replaced by other functions of the token. All other nodes are the model's own.
// Given values can be replaced by numbers that are fed.
//
// The skeleton of package eval is another copy without weights. It has the right shapes,
// and zeros in all values.
type standIn struct {
	graph    *graph.Graph
	replaced map[string]bool // the values that can be replaced by what is fed
	rng      *rand.Rand
	nodes    []*onnx.Node
	consts   []*onnx.Tensor
	inputs   []*onnx.ValueInfo // the graph inputs that are read
	outputs  []string
	vectors  bool           // the model's own vectors, such as the weights of norms, are kept
	held     int64          // bytes of the model's own constants that are kept
	weakest  rope.Precision // the least precise type of all values
}

// A replaced value has two inputs, whose names end with these: which of its elements stay
// what the model computes, and the numbers for the other elements.
const (
	keepSuffix  = "/rope-rewrite/keep"
	otherSuffix = "/rope-rewrite/other"
)

// Constants of the model up to these sizes in bytes are kept: tables of positions and
// masks, not weights.
const (
	maxTakenOver    = 16 << 20  // one constant
	maxAllTakenOver = 256 << 20 // all of them together
)

// maxGiven bounds how many elements per token the stand-in gives for a product with weights
// that is an output, such as the scores of a vocabulary: more would show no more.
const maxGiven = 64

// newStandIn returns a stand-in of a graph in which the given values can be replaced. It
// returns an error for nodes that cannot be evaluated.
func newStandIn(g *graph.Graph, replaced []string, vectors bool) (*standIn, error) {
	s := &standIn{graph: g, vectors: vectors, replaced: map[string]bool{}, rng: rand.New(rand.NewPCG(11, 12))}
	for _, v := range replaced {
		s.replaced[v] = true
	}
	var graphOutputs []string
	for _, o := range g.Model.Graph.Outputs {
		n := g.Producer[o.Name] // an input that is only given back depends on no token
		if n != nil && !(ir.Standard(n, "Identity") && g.Inputs[n.Inputs[0]] != nil) {
			graphOutputs = append(graphOutputs, o.Name)
		}
	}
	needed := map[*onnx.Node]bool{}
	var wrong error
	g.Upstream(graphOutputs, func(v string, n *onnx.Node) []string {
		switch {
		case g.Constants[v] != nil:
			s.constant(v, g.Constants[v])
		case n == nil && g.Inputs[v] != nil:
			s.inputs = append(s.inputs, g.Inputs[v])
		case n == nil || needed[n]:
		default:
			needed[n] = true
			if p := g.Projection(n); p != nil {
				return []string{p.From}
			}
			if err := g.Evaluable(n); err != nil && wrong == nil {
				wrong = err
			}
			return ir.Reads(n)
		}
		return nil
	})
	if wrong != nil {
		return nil, wrong
	}
	for _, n := range g.Nodes {
		if needed[n] {
			s.node(n)
			for _, o := range n.Outputs {
				if p := ir.Precision(g.Element(o)); p.Epsilon() > s.weakest.Epsilon() {
					s.weakest = p
				}
			}
		}
	}
	for _, v := range graphOutputs {
		if ir.Is16Bit(g.Element(v)) { // the engine gives no outputs in 16 bits
			s.nodes = append(s.nodes, ir.Cast(v, v+"/rope-rewrite/given", onnx.Float))
			v += "/rope-rewrite/given"
		}
		s.outputs = append(s.outputs, v)
	}
	return s, nil
}

// model returns the stand-in as a model.
func (s *standIn) model() *onnx.Model {
	m := ir.EmptyModel(s.graph.Model)
	m.Graph.Nodes, m.Graph.Initializers = s.nodes, s.consts
	for _, v := range s.inputs {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: v.Name, Type: v.Type})
	}
	for v := range s.replaced {
		m.Graph.Inputs = append(m.Graph.Inputs,
			&onnx.ValueInfo{Name: v + keepSuffix, Type: onnx.Bool}, &onnx.ValueInfo{Name: v + otherSuffix, Type: onnx.Float})
	}
	for _, v := range s.outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: v})
	}
	return m
}

// node appends a node of the graph, or what replaces it.
func (s *standIn) node(n *onnx.Node) {
	made := []*onnx.Node{n}
	switch p := s.graph.Projection(n); {
	case p != nil:
		if v := n.Outputs[0]; s.graph.Outputs[v] && len(s.graph.Consumers[v]) == 0 {
			few := *p
			few.Width = min(p.Width, maxGiven)
			p = &few
		}
		made = s.function(p, n.Outputs[0])
	case ir.Standard(n, "DynamicQuantizeLinear") && len(n.Outputs) == 3:
		made = s.quantize(n)
	}
	for _, v := range n.Outputs {
		if !s.replaced[v] {
			continue
		}
		own, other := v+"/rope-rewrite/own", v+otherSuffix
		made = append(ir.Renamed(made, map[string]string{v: own}), nil)
		where := onnx.NewNode("Where", []string{v + keepSuffix, own, other}, []string{v})
		if t := s.graph.Element(v); t != onnx.Float {
			where.Inputs[2] = other + "/cast"
			made = append(made[:len(made)-1], ir.Cast(other, where.Inputs[2], t), nil)
		}
		made[len(made)-1] = where
	}
	s.nodes = append(s.nodes, made...)
}

// function returns the nodes that replace a product with weights. From each token's
// elements x, or from its index into a table, they compute as many elements:
//
//	sin(a · mean(sin 3x) + b · mean(cos 5x − 1))        sin(a · index + b)
//
// with random a and b. Different tokens give different numbers, which stay small. Where x
// is 0 they are 0, as a product is: a division may follow.
func (s *standIn) function(p *graph.Projection, out string) []*onnx.Node {
	var nodes []*onnx.Node
	add := func(part, op string, inputs []string, attrs ...*onnx.Attribute) string {
		name := fmt.Sprintf("%s/rope-rewrite/%s", out, part)
		nodes = append(nodes, onnx.NewNode(op, inputs, []string{name}, attrs...))
		return name
	}
	random := func(part string, size float64) string {
		values := make([]float32, p.Width)
		for i := range values {
			values[i] = float32(size * s.rng.NormFloat64())
		}
		name := fmt.Sprintf("%s/rope-rewrite/%s", out, part)
		s.consts = append(s.consts, ir.Float32Tensor(name, []int64{p.Width}, values...))
		return name
	}
	number := func(part string, value float32) string {
		name := fmt.Sprintf("%s/rope-rewrite/%s", out, part)
		s.consts = append(s.consts, ir.Float32Tensor(name, nil, value))
		return name
	}
	x := add("float", "Cast", []string{p.From}, onnx.IntAttr("to", int64(onnx.Float)))
	sum := ""
	if p.LooksUp() {
		name := out + "/rope-rewrite/one"
		s.consts = append(s.consts, ir.Int64Tensor(name, []int64{1}, 1))
		shape := add("shape", "Concat", []string{add("dims", "Shape", []string{p.From}), name}, onnx.IntAttr("axis", 0))
		x = add("column", "Reshape", []string{x, shape})
		sum = add("sum", "Add", []string{add("turn", "Mul", []string{x, random("a", 1)}), random("b", 1)})
	} else {
		sines := add("sines", "Sin", []string{add("three", "Mul", []string{x, number("3", 3)})})
		cosines := add("cosines", "Cos", []string{add("five", "Mul", []string{x, number("5", 5)})})
		cosines = add("versines", "Sub", []string{cosines, number("1", 1)})
		first := add("first", "Mul", []string{s.mean(add, "mean sine", sines), random("a", 8)})
		second := add("second", "Mul", []string{s.mean(add, "mean cosine", cosines), random("b", 8)})
		sum = add("sum", "Add", []string{first, second})
	}
	y := add("sine", "Sin", []string{sum})
	if p.Element == onnx.Int32 {
		y = add("large", "Mul", []string{y, number("1000", 1000)})
	}
	nodes = append(nodes, ir.Cast(y, out, p.Element))
	return nodes
}

// mean averages over the last dimension, which is kept with size 1.
func (s *standIn) mean(add func(part, op string, inputs []string, attrs ...*onnx.Attribute) string, part, x string) string {
	if s.graph.Model.Opset("") < 18 {
		return add(part, "ReduceMean", []string{x}, onnx.IntsAttr("axes", -1))
	}
	axes := fmt.Sprintf("%s/axes", x)
	s.consts = append(s.consts, ir.Int64Tensor(axes, []int64{1}, -1))
	return add(part, "ReduceMean", []string{x, axes})
}

// quantize replaces a DynamicQuantizeLinear, whose scale depends on all tokens, by one of
// constant scale. To a token that makes no difference but rounding.
func (s *standIn) quantize(n *onnx.Node) []*onnx.Node {
	scale, zero := n.Outputs[1]+"/rope-rewrite/scale", n.Outputs[2]+"/rope-rewrite/zero"
	s.consts = append(s.consts, ir.Float32Tensor(scale, nil, 1.0/32), onnx.NewTensor(zero, onnx.Uint8, nil, []byte{128}))
	return []*onnx.Node{
		onnx.NewNode("QuantizeLinear", []string{n.Inputs[0], scale, zero}, n.Outputs[:1]),
		onnx.NewNode("Identity", []string{scale}, n.Outputs[1:2]),
		onnx.NewNode("Identity", []string{zero}, n.Outputs[2:]),
	}
}

// constant keeps a constant. One that is large, or whose data is missing, is replaced by
// numbers of its shape and type: sin 0, sin 1, sin 2 …, or one number everywhere where it has
// more than maxTakenOver elements.
func (s *standIn) constant(name string, t *onnx.Tensor) {
	take := t.ByteLen() <= maxTakenOver && s.held+t.ByteLen() <= maxAllTakenOver && !graph.Absent(t)
	if !s.vectors && len(t.Dims) == 1 && t.Len() > 1 {
		take = false
	}
	if take || !ir.IsFloat(t.Type) && !graph.Quantised(t.Type) {
		s.held += t.ByteLen()
		c := t.Clone()
		c.Name = name
		s.consts = append(s.consts, c)
		return
	}
	part := func(p string) string { return fmt.Sprintf("%s/rope-rewrite/%s", name, p) }
	s.consts = append(s.consts, ir.Int64Tensor(part("shape"), []int64{int64(len(t.Dims))}, t.Dims...))
	if t.Len() > maxTakenOver {
		s.nodes = append(s.nodes,
			onnx.NewNode("ConstantOfShape", []string{part("shape")}, []string{part("even")}, onnx.TensorAttr("value", ir.Float32Tensor("", []int64{1}, 0.01))),
			ir.Cast(part("even"), name, t.Type))
		return
	}
	scale, shift := float32(1), float32(0)
	if graph.Quantised(t.Type) {
		scale, shift = 60, 64 // within int8 and uint8
	}
	for p, value := range map[string]float32{"0": 0, "1": 1, "end": float32(t.Len()), "scale": scale, "shift": shift} {
		s.consts = append(s.consts, ir.Float32Tensor(part(p), nil, value))
	}
	s.nodes = append(s.nodes,
		onnx.NewNode("Range", []string{part("0"), part("end"), part("1")}, []string{part("range")}),
		onnx.NewNode("Sin", []string{part("range")}, []string{part("sines")}),
		onnx.NewNode("Mul", []string{part("sines"), part("scale")}, []string{part("scaled")}),
		onnx.NewNode("Add", []string{part("scaled"), part("shift")}, []string{part("shifted")}),
		onnx.NewNode("Reshape", []string{part("shifted"), part("shape")}, []string{part("shaped")}),
		ir.Cast(part("shaped"), name, t.Type))
}
