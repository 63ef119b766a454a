package lower

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// scaled multiplies [batch, heads, length, channels] of an element type by the
// numbers of scales, in the type that the model does it in.
func scaled(b *ir.Builder, value string, list []loweredScale, element onnx.DataType, part string) string {
	for i, s := range list {
		name := fmt.Sprintf("%s_scale_%d", part, i)
		by := s.Value
		if s.layout != nil && !s.Norm {
			by = Canonical(b, by, *s.layout, name)
		}
		if s.element != element {
			value = b.Add("Cast", []string{value}, b.Value(name+"_wide"), onnx.IntAttr("to", int64(s.element)))
		}
		if s.Norm {
			of := value
			if s.longer != 1 {
				of = b.Add("Mul", []string{value, b.Floats(name+"_longer", s.element, []float64{s.longer})}, b.Value(name+"_of"))
			}
			by = repeated(b, s.chain, map[string]string{s.Of: of}, s.Value, name)
		}
		value = b.Add(s.Node.OpType, []string{value, by}, b.Value(name+"_by"))
		if s.element != element {
			value = b.Add("Cast", []string{value}, b.Value(name+"_back"), onnx.IntAttr("to", int64(element)))
		}
	}
	return value
}

// repeated writes nodes once more with other inputs, and returns what a value of
// theirs is then called.
func repeated(b *ir.Builder, nodes []*onnx.Node, names map[string]string, value, part string) string {
	for i, n := range nodes {
		c := n.Clone()
		for k, v := range c.Inputs {
			if names[v] != "" {
				c.Inputs[k] = names[v]
			}
		}
		for k, v := range c.Outputs {
			names[v] = b.Value(fmt.Sprintf("%s_%d_%d", part, i, k))
			c.Outputs[k] = names[v]
		}
		c.Name = c.Outputs[0]
		b.Nodes = append(b.Nodes, c)
	}
	return names[value]
}

// loweredScale is a scale as the op's nodes have it.
type loweredScale struct {
	site.TokenScale
	layout  *dim.Layout
	element onnx.DataType
	chain   []*onnx.Node // that make a norm
	longer  float64      // what the norm is taken of, times the un-rotated vector
}

// loweredScales completes a branch's scales, the nearest to the cut first; longer is
// what norms returned of them.
func loweredScales(b site.Branch, g *graph.Graph, t *eval.ShapeTable, longer []float64) (list []loweredScale, err error) {
	for i, s := range slices.Backward(b.Scales) {
		ly, err := site.ScaleLayout(t, s)
		if err != nil {
			return nil, err
		}
		p := loweredScale{TokenScale: s, layout: ly, element: g.Element(s.Value), longer: longer[i]}
		if s.Norm {
			if p.chain, err = site.Chain(g, s); err != nil {
				return nil, err
			}
		}
		list = append(list, p)
	}
	return list, nil
}
