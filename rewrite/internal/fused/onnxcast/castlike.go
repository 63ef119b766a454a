package onnxcast

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Adapter reads the standard op CastLike.
func Adapter() fused.Adapter { return fused.Adapter{OpType: "CastLike", Expand: expand} }

func expand(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
	if err := fused.Known(n, "saturate", "round_mode"); err != nil { // Cast has them too
		return nil, err
	}
	if err := fused.Arity(n, 2, 2, 1); err != nil {
		return nil, err
	}
	to := c.Type(n.Inputs[1])
	if to == onnx.Undefined {
		return &fused.Expansion{Nodes: []*onnx.Node{n}}, nil
	}
	b := fused.NewBuilder(n)
	b.AddTo(n.Outputs[0], "Cast", n.Inputs[:1], append([]*onnx.Attribute{onnx.IntAttr("to", int64(to))}, n.Attributes...)...)
	return b.Expansion(), nil
}
