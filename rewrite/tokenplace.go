package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// The numbers that multiply whole tokens, as the nodes in front of the op have them.

// scaleLayout says where the numbers of a scale lie, nil where there is one for all.
func (t *shapeTable) scaleLayout(s tokenScale) (*layout, error) {
	dims := t.dims[s.value]
	if !slices.ContainsFunc(dims, func(e extent) bool { return e != constantExtent(1) }) {
		return nil, nil
	}
	ly, err := layoutOf(t.dims[s.of], 0)
	if err != nil {
		return nil, err
	}
	at := slices.Index(ly.axes, channelAxis)
	if len(ly.axes) != 4 || len(dims) != 4 || at < 0 || slices.Contains(ly.axes, unitAxis) || dims[at] != constantExtent(1) {
		return nil, fmt.Errorf("%q of shape %v multiplies a value of shape %v; a number for each token and head was expected", s.value, dims, t.dims[s.of])
	}
	return &ly, nil
}

// scaled multiplies [batch, heads, length, channels] of an element type by the
// numbers of scales, in the type that the model does it in.
func (b *builder) scaled(value string, list []placedScale, element onnx.DataType, part string) string {
	for i, s := range list {
		name := fmt.Sprintf("%s_scale_%d", part, i)
		by := s.value
		if s.layout != nil && !s.norm {
			by = b.canonical(by, *s.layout, name)
		}
		if s.element != element {
			value = b.add("Cast", []string{value}, b.value(name+"_wide"), onnx.IntAttr("to", int64(s.element)))
		}
		if s.norm {
			of := value
			if s.longer != 1 {
				of = b.add("Mul", []string{value, b.floats(name+"_longer", s.element, []float64{s.longer})}, b.value(name+"_of"))
			}
			by = b.repeated(s.chain, map[string]string{s.of: of}, s.value, name)
		}
		value = b.add(s.node.OpType, []string{value, by}, b.value(name+"_by"))
		if s.element != element {
			value = b.add("Cast", []string{value}, b.value(name+"_back"), onnx.IntAttr("to", int64(element)))
		}
	}
	return value
}

// repeated writes nodes once more with other inputs, and returns what a value of
// theirs is then called.
func (b *builder) repeated(nodes []*onnx.Node, names map[string]string, value, part string) string {
	for i, n := range nodes {
		c := n.Clone()
		for k, v := range c.Inputs {
			if names[v] != "" {
				c.Inputs[k] = names[v]
			}
		}
		for k, v := range c.Outputs {
			names[v] = b.value(fmt.Sprintf("%s_%d_%d", part, i, k))
			c.Outputs[k] = names[v]
		}
		c.Name = c.Outputs[0]
		b.nodes = append(b.nodes, c)
	}
	return names[value]
}

// placedScale is a scale as the op's nodes have it.
type placedScale struct {
	tokenScale
	layout  *layout
	element onnx.DataType
	chain   []*onnx.Node // that make a norm
	longer  float64      // what the norm is taken of, times the un-rotated vector
}

// placed completes a branch's scales, the nearest to the cut first; longer is
// what norms returned of them.
func (b branch) placed(g *graph, t *shapeTable, longer []float64) (list []placedScale, err error) {
	for i, s := range slices.Backward(b.scales) {
		ly, err := t.scaleLayout(s)
		if err != nil {
			return nil, err
		}
		p := placedScale{tokenScale: s, layout: ly, element: g.element(s.value), longer: longer[i]}
		if s.norm {
			if p.chain, err = g.chain(s); err != nil {
				return nil, err
			}
		}
		list = append(list, p)
	}
	return list, nil
}
