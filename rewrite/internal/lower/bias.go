package lower

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// A mask that none of the op's attributes expresses is given to the op as a bias on the
// scores. The model's own nodes compute it: they are written once more, with zeros in
// place of the scores. The names of the new nodes follow from what they compute, so
// layers with the same mask share them.

// Bias is the nodes that compute a site's bias, and the name of their result.
type Bias struct {
	ir.Builder
	value string
}

// writeBias returns the nodes that compute a site's bias.
func writeBias(s *site.Sized, m *measure.Measured) (*Bias, error) {
	g := s.Graph
	bias := &Bias{Builder: ir.Builder{Stem: "rope_rewrite/bias", ByContent: true, Title: ir.Untitled}}
	names := map[string]string{}
	kind := g.Element(s.Scores())
	if m.ScalarBias {
		zero := onnx.NewTensor("", kind, []int64{1, 1, 1, 1}, make([]byte, kind.Size()))
		names[s.Scores()] = bias.AddNamedConstant(fmt.Sprintf("zero_%v", kind), zero)
	} else {
		shape, err := biasSizes(s, bias, m, s.Table.Dims[s.Scores()])
		if err != nil {
			return nil, err
		}
		names[s.Scores()] = bias.AddNode(ir.Zeros(kind, shape, ""))[0]
	}
	for _, b := range s.Biases {
		names[b.Value] = b.Value
	}
	needed := map[*onnx.Node]bool{}
	inside := s.Inside()
	var wrong error
	g.Upstream([]string{s.SoftmaxInput()}, func(v string, n *onnx.Node) []string {
		switch {
		case names[v] != "":
		case g.Constants[v] != nil && g.Internal[v]:
			names[v] = bias.AddConstant(g.Constants[v].Clone())
		case n != nil && g.Classes[v] == graph.ShapeClass && ir.Standard(n, "Shape", "Size") && inside[n.Inputs[0]]:
			// The value whose size this is will be computed inside the op, or not at all.
			sizes, ok := s.Table.Sizes[v]
			if !ok || n.OpType == "Size" {
				wrong = fmt.Errorf("the bias needs the size %q", short.Name(v))
				return nil
			}
			var err error
			if names[v], err = biasSizes(s, bias, m, sizes); err != nil {
				wrong = err
			}
		case n == nil || !inside[v] && !g.Internal[v] || g.Constants[v] != nil:
			names[v] = v
		default:
			if err := copyable(n); err != nil {
				wrong = err
			}
			needed[n] = true
			return ir.Reads(n)
		}
		return nil
	})
	bias.copy(g, needed, names)
	bias.value = names[s.SoftmaxInput()]
	if m.Layouts.Sinks > 0 {
		from, to, axis := bias.list(0), bias.list(-m.Layouts.Sinks), bias.list(int64(m.Layouts.Softmax.RowAxis()+1))
		bias.value = bias.Add("Slice", []string{bias.value, from, to, axis})
	}
	if m.Layouts.Softmax.Folded {
		shape, err := biasSizes(s, bias, m, []dim.Extent{dim.BatchExtent, dim.ConstantExtent(m.Layouts.Scores.Heads), dim.LengthExtent, eval.TotalOf(s.Table)})
		if err != nil {
			return nil, err
		}
		bias.value = bias.Add("Reshape", []string{bias.value, shape})
	}
	if to := g.Element(s.Query.Boundary); g.Element(s.SoftmaxInput()) != to {
		bias.value = bias.Add("Cast", []string{bias.value}, onnx.IntAttr("to", int64(to)))
	}
	return bias, wrong
}

// copyable is an error for a node that cannot be written once more.
func copyable(n *onnx.Node) error {
	for range n.Subgraphs() {
		return fmt.Errorf("the bias is computed by %s, which has a graph inside", ir.Label(n))
	}
	return nil
}

// copy writes nodes of the graph once more. names has what stands in the copies for values
// that they read, and gets those that they make.
func (bias *Bias) copy(g *graph.Graph, needed map[*onnx.Node]bool, names map[string]string) {
	for _, n := range g.Nodes {
		if !needed[n] {
			continue
		}
		c := n.Clone()
		for i, v := range c.Inputs {
			if v != "" {
				c.Inputs[i] = names[v]
			}
		}
		for i, name := range bias.AddNode(c) {
			names[n.Outputs[i]] = name
		}
	}
}

// biasSizes writes nodes that compute the given sizes from the shapes of the values that
// enter the site, and returns the name of the list, int64 [number of sizes].
func biasSizes(s *site.Sized, bias *Bias, m *measure.Measured, list []dim.Extent) (string, error) {
	sizeOf := func(value string, i int64) string {
		return bias.Add("Slice", []string{bias.Add("Shape", []string{value}), bias.list(i), bias.list(i + 1)})
	}
	batch, length := slices.Index(m.Layouts.Query.Axes, dim.BatchAxis), slices.Index(m.Layouts.Query.Axes, dim.RowAxis)
	if batch < 0 || length < 0 {
		return "", fmt.Errorf("the bias needs the sizes %v, which the shape of %q does not tell", list, short.Name(s.Query.Boundary))
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
				terms = append(terms, bias.Add("Mul", []string{of(), bias.list(factor)}))
			}
		}
		term(x.B, func() string { return sizeOf(s.Query.Boundary, int64(batch)) })
		term(x.L, func() string { return sizeOf(s.Query.Boundary, int64(length)) })
		if s.Past() {
			term(x.P, func() string { return sizeOf(s.Key.Past(), 2) })
		}
		if x.One != 0 || len(terms) == 0 {
			terms = append(terms, bias.list(x.One))
		}
		sum := terms[0]
		for _, t := range terms[1:] {
			sum = bias.Add("Add", []string{sum, t})
		}
		parts = append(parts, sum)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return bias.Add("Concat", parts, onnx.IntAttr("axis", 0)), nil
}

// list returns the name of a constant list with one integer.
func (bias *Bias) list(value int64) string { return bias.Constant(fmt.Sprint(value), value) }
