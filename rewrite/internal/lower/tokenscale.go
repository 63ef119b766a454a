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
		if s.layout != nil {
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
			by = copied(b, s.chain, map[string]string{s.Of: of}, s.constants, s.Value, name)
		}
		value = b.AddAs(name+"_by", s.Node.OpType, []string{value, by})
		if s.element != element {
			value = b.AddAs(name+"_back", "Cast", []string{value}, onnx.IntAttr("to", int64(element)))
		}
	}
	return value
}

// copied writes nodes once more under other names. names maps inputs to the new ones,
// constants are those that the model itself does not have. It returns the new name of one
// of their values.
func copied(b *ir.Builder, nodes []*onnx.Node, names map[string]string, constants map[string]*onnx.Tensor, value, part string) string {
	for i, n := range nodes {
		c := n.Clone()
		for k, v := range c.Inputs {
			if t := constants[v]; t != nil && names[v] == "" {
				names[v] = b.AddNamedConstant(fmt.Sprintf("%s_%d_in_%d", part, i, k), t.Clone())
			}
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
	layout     *dim.Layout // of what is no norm; nil for a single number
	element    onnx.DataType
	chain      []*onnx.Node            // of a norm: the nodes that compute it
	constants  map[string]*onnx.Tensor // of a norm that is one node in the model: the constants of its definition
	normFactor float64                 // of a norm: the factor on the query or key before it
}

// loweredScales returns a branch's factors per token, the nearest to the boundary first.
// normFactors are those of measure.Measured.
func loweredScales(b site.Branch, g *graph.Graph, t *eval.ShapeTable, normFactors []float64) (list []loweredScale, err error) {
	for i, s := range slices.Backward(b.Scales) {
		lowered := loweredScale{TokenScale: s, element: g.Element(s.Value), normFactor: normFactors[i]}
		if !s.Norm {
			if lowered.layout, err = site.ScaleLayout(t, s); err != nil {
				return nil, err
			}
		} else {
			if lowered.chain, err = site.Chain(g, s); err != nil {
				return nil, err
			}
			lowered.constants = ownConstants(g, lowered.chain)
		}
		list = append(list, lowered)
	}
	return list, nil
}

// ownConstants are those that nodes read and that the model does not have: the constants
// of a fused op's definition.
func ownConstants(g *graph.Graph, nodes []*onnx.Node) map[string]*onnx.Tensor {
	list := map[string]*onnx.Tensor{}
	for _, n := range nodes {
		for _, v := range n.Inputs {
			if t := g.Constants[v]; t != nil && g.Internal[v] {
				list[v] = t
			}
		}
	}
	return list
}
