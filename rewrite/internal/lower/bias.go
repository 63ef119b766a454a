package lower

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// A mask that is none of the op's own kinds stays what it is: a bias on the
// scores that the exporter's nodes compute. It is what these nodes make of
// scores of zero, so they are written once more with zeros for scores. Layers
// that share a mask come to share these nodes.

// BiasSubgraph is the bias of a site: nodes, and the value that holds it.
type BiasSubgraph struct {
	nodes     []*onnx.Node
	constants []*onnx.Tensor
	value     string
}

// writeBias writes the nodes that make a site's bias.
func writeBias(s *site.Sized, l *measure.Measured) (*BiasSubgraph, error) {
	g := s.Graph
	e := &BiasSubgraph{}
	names := map[string]string{}
	kind := g.Element(s.Scores())
	if l.ScalarBias {
		zero := onnx.NewTensor(fmt.Sprintf("rope_rewrite/bias/zero_%v", kind), kind, []int64{1, 1, 1, 1}, make([]byte, kind.Size()))
		e.constants = append(e.constants, zero)
		names[s.Scores()] = zero.Name
	} else {
		scores := l.Layouts.Scores
		shape, err := biasSizes(s, e, l, scores)
		if err != nil {
			return nil, err
		}
		names[s.Scores()] = e.add(ir.Zeros(kind, shape, ""))
	}
	needed := map[*onnx.Node]bool{}
	inside := s.Inside()
	var wrong error
	g.Upstream([]string{s.SoftmaxInput()}, func(v string, n *onnx.Node) []string {
		switch {
		case names[v] != "":
		case g.Constants[v] != nil && g.Internal[v]:
			t := g.Constants[v].Clone()
			w := sha256.New()
			site.WriteTensor(w, t)
			t.Name = fmt.Sprintf("rope_rewrite/bias/%x", w.Sum(nil)[:8])
			names[v] = t.Name
			e.constants = append(e.constants, t)
		case n != nil && g.Classes[v] == graph.ShapeClass && ir.Standard(n, "Shape", "Size") && inside[n.Inputs[0]]:
			// The op makes what it is the size of, or it is made no more.
			sizes, ok := s.Table.Sizes[v]
			if !ok || n.OpType == "Size" {
				wrong = fmt.Errorf("the bias needs the size %q", v)
				return nil
			}
			var err error
			if names[v], err = biasSizes(s, e, l, sizes); err != nil {
				wrong = err
			}
		case n == nil || !inside[v] && !g.Internal[v] || g.Constants[v] != nil:
			names[v] = v
		default:
			for range n.Subgraphs() {
				wrong = fmt.Errorf("the bias is computed by %s, which has a graph inside", ir.Label(n))
			}
			needed[n] = true
			return ir.Reads(n)
		}
		return nil
	})
	for _, n := range g.Nodes {
		if !needed[n] {
			continue
		}
		c := n.Clone()
		c.Name = ""
		for i, v := range c.Inputs {
			if v != "" {
				c.Inputs[i] = names[v]
			}
		}
		e.add(c)
		for i, o := range n.Outputs {
			names[o] = c.Outputs[i]
		}
	}
	e.value = names[s.SoftmaxInput()]
	if l.Layouts.Sinks > 0 {
		from, to, axis := e.list(0), e.list(-l.Layouts.Sinks), e.list(3)
		e.value = e.add(onnx.NewNode("Slice", []string{e.value, from, to, axis}, []string{""}))
	}
	if to := g.Element(s.Query.Boundary); g.Element(s.SoftmaxInput()) != to {
		e.value = e.add(ir.Cast(e.value, "", to))
	}
	return e, wrong
}

// biasSizes makes a list of sizes out of the shapes of what enters the site.
func biasSizes(s *site.Sized, e *BiasSubgraph, l *measure.Measured, list []dim.Extent) (string, error) {
	sizeOf := func(value string, i int64) string {
		shape := e.add(onnx.NewNode("Shape", []string{value}, []string{""}))
		return e.add(onnx.NewNode("Slice", []string{shape, e.list(i), e.list(i + 1)}, []string{""}))
	}
	batch, length := slices.Index(l.Layouts.Query.Axes, dim.BatchAxis), slices.Index(l.Layouts.Query.Axes, dim.RowAxis)
	if batch < 0 || length < 0 {
		return "", fmt.Errorf("the bias needs the sizes %v, which the shape of %q does not tell", list, s.Query.Boundary)
	}
	var parts []string
	for _, x := range list {
		if x.BL != 0 || x.BP != 0 {
			return "", fmt.Errorf("the bias needs the size %v", x)
		}
		var terms []string
		term := func(factor int64, of func() string) {
			switch factor {
			case 0:
			case 1:
				terms = append(terms, of())
			default:
				terms = append(terms, e.add(onnx.NewNode("Mul", []string{of(), e.list(factor)}, []string{""})))
			}
		}
		term(x.B, func() string { return sizeOf(s.Query.Boundary, int64(batch)) })
		term(x.L, func() string { return sizeOf(s.Query.Boundary, int64(length)) })
		if s.Past() {
			term(x.P, func() string { return sizeOf(s.Key.Past(), 2) })
		}
		if x.One != 0 || len(terms) == 0 {
			terms = append(terms, e.list(x.One))
		}
		sum := terms[0]
		for _, t := range terms[1:] {
			sum = e.add(onnx.NewNode("Add", []string{sum, t}, []string{""}))
		}
		parts = append(parts, sum)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return e.add(onnx.NewNode("Concat", parts, []string{""}, onnx.IntAttr("axis", 0))), nil
}

// list makes a constant of one integer.
func (e *BiasSubgraph) list(value int64) string {
	t := ir.Int64Tensor(fmt.Sprintf("rope_rewrite/bias/%d", value), []int64{1}, value)
	if !slices.ContainsFunc(e.constants, func(c *onnx.Tensor) bool { return c.Name == t.Name }) {
		e.constants = append(e.constants, t)
	}
	return t.Name
}

// add names a node's outputs after what they are and appends it, unless it is
// there already.
func (e *BiasSubgraph) add(n *onnx.Node) string {
	w := sha256.New()
	fmt.Fprintf(w, "%q %q %q", n.Domain, n.OpType, n.Inputs)
	site.WriteAttributes(w, n)
	sum := w.Sum(nil)[:8]
	for i := range n.Outputs {
		n.Outputs[i] = fmt.Sprintf("rope_rewrite/bias/%s_%x_%d", n.OpType, sum, i)
	}
	if !slices.ContainsFunc(e.nodes, func(c *onnx.Node) bool { return c.Outputs[0] == n.Outputs[0] }) {
		e.nodes = append(e.nodes, n)
	}
	return n.Outputs[0]
}
