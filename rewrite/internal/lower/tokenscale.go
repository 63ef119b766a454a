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

// scaled multiplies [batch, heads, length, channels] by factors per token, in the element
// type in which the model does so. element is the type of value and result.
func scaled(b *ir.Builder, value string, list []loweredScale, element onnx.DataType, part string) string {
	for i, s := range list {
		name := fmt.Sprintf("%s_scale_%d", part, i)
		by := s.Value
		if s.layout != nil && !s.Norm {
			by = Canonical(b, by, *s.layout, name)
		}
		if s.element != element {
			value = b.AddAs(name+"_wide", "Cast", []string{value}, onnx.IntAttr("to", int64(s.element)))
		}
		if s.Norm {
			of := value
			if s.normFactor != 1 {
				of = b.AddAs(name+"_of", "Mul", []string{value, b.Floats(name+"_longer", s.element, []float64{s.normFactor})})
			}
			by = copied(b, s.chain, map[string]string{s.Of: of}, s.Value, name)
		}
		value = b.AddAs(name+"_by", s.Node.OpType, []string{value, by})
		if s.element != element {
			value = b.AddAs(name+"_back", "Cast", []string{value}, onnx.IntAttr("to", int64(element)))
		}
	}
	return value
}

// copied writes nodes once more under other names. names maps inputs to the new ones. It
// returns the new name of one of their values.
func copied(b *ir.Builder, nodes []*onnx.Node, names map[string]string, value, part string) string {
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

// loweredScale is a factor per token with what it takes to write it before the op.
type loweredScale struct {
	site.TokenScale
	layout     *dim.Layout // nil for a single number
	element    onnx.DataType
	chain      []*onnx.Node // of a norm: the nodes that compute it
	normFactor float64      // of a norm: the factor on the query or key before it
}

// loweredScales returns a branch's factors per token, the nearest to the boundary first.
// normFactors are those of measure.Measured.
func loweredScales(b site.Branch, g *graph.Graph, t *eval.ShapeTable, normFactors []float64) (list []loweredScale, err error) {
	for i, s := range slices.Backward(b.Scales) {
		ly, err := site.ScaleLayout(t, s)
		if err != nil {
			return nil, err
		}
		lowered := loweredScale{TokenScale: s, layout: ly, element: g.Element(s.Value), normFactor: normFactors[i]}
		if s.Norm {
			if lowered.chain, err = site.Chain(g, s); err != nil {
				return nil, err
			}
		}
		list = append(list, lowered)
	}
	return list, nil
}
