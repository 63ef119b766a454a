package rmsnorm

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Simplified reads SimplifiedLayerNormalization.
func Simplified() fused.Adapter {
	return fused.Adapter{OpType: "SimplifiedLayerNormalization", Expand: expand}
}

// Standard reads RMSNormalization.
func Standard() fused.Adapter { return fused.Adapter{OpType: "RMSNormalization", Expand: expand} }

// listedAxes is the first operator set whose ReduceMean takes its axes as an input.
const listedAxes = 18

func expand(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
	if err := fused.Known(n, "axis", "epsilon", "stash_type"); err != nil {
		return nil, err
	}
	if err := fused.Arity(n, 2, 2, 2); err != nil {
		return nil, err
	}
	epsilon, err := fused.Float(n, "epsilon", 1e-5)
	if err != nil {
		return nil, err
	}
	if _, err := fused.Int(n, "stash_type", 1, 1, 1); err != nil {
		return nil, err
	}
	axes, err := axesOf(n, c)
	if err != nil {
		return nil, err
	}
	x, scale := n.Inputs[0], n.Inputs[1]
	b := fused.NewBuilder(n)
	narrow := c.Type(x)
	wide := narrow == onnx.Undefined || narrow == onnx.Float || narrow == onnx.Double
	element := onnx.Float
	if narrow == onnx.Double {
		element = narrow
	}
	if !wide {
		x = b.Add("Cast", []string{x}, onnx.IntAttr("to", int64(onnx.Float)))
	}
	inputs, attribute := []string{b.Add("Mul", []string{x, x}), ""}, []*onnx.Attribute(nil)
	if c.Opset < listedAxes {
		inputs, attribute = inputs[:1], []*onnx.Attribute{onnx.IntsAttr("axes", axes...)}
	} else {
		inputs[1] = b.Ints(axes...)
	}
	mean := b.Add("ReduceMean", inputs, attribute...)
	root := b.Add("Sqrt", []string{b.Add("Add", []string{mean, b.Float(epsilon, element)})})
	normed := b.Add("Div", []string{x, root})
	if !wide {
		normed = b.Add("Cast", []string{normed}, onnx.IntAttr("to", int64(narrow)))
	}
	b.AddTo(n.Outputs[0], "Mul", []string{normed, scale})
	if inverse := fused.Output(n, 1); inverse != "" {
		b.AddTo(inverse, "Reciprocal", []string{root})
	}
	return b.Expansion(), nil
}

// axesOf lists the dimensions over which the mean is taken, counted from the last.
func axesOf(n *onnx.Node, c fused.Context) ([]int64, error) {
	const most = 16
	axis, err := fused.Int(n, "axis", -1, -most, most)
	if err != nil {
		return nil, err
	}
	if axis >= 0 {
		rank, ok := c.Rank(n.Inputs[0])
		switch {
		case !ok:
			return nil, fmt.Errorf("the graph does not say how many dimensions its input %q has", short.Name(n.Inputs[0]))
		case axis >= int64(rank):
			return nil, fmt.Errorf("its axis is %d, and its input %q has %d dimensions", axis, short.Name(n.Inputs[0]), rank)
		}
		axis -= int64(rank)
	}
	var axes []int64
	for ; axis < 0; axis++ {
		axes = append(axes, axis)
	}
	return axes, nil
}
