package fused_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// An adapter of an op FastGate, x · sigmoid(alpha · x).
func Example() {
	gate := fused.Adapter{
		Domain: "com.example", OpType: "FastGate",
		Expand: func(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
			if err := fused.Known(n, "alpha"); err != nil {
				return nil, err
			}
			alpha, err := fused.Float(n, "alpha", 1)
			if err != nil {
				return nil, err
			}
			x := n.Inputs[0]
			b := fused.NewBuilder(n)
			s := b.Add("Sigmoid", []string{b.Add("Mul", []string{x, b.Float(alpha, c.Type(x))})})
			b.AddTo(n.Outputs[0], "Mul", []string{x, s})
			return b.Expansion(), nil
		},
	}
	n := onnx.NewNode("FastGate", []string{"x"}, []string{"y"}, onnx.FloatAttr("alpha", 1.702))
	n.Name = "layer 1"
	e, err := gate.Expand(n, fused.Context{Type: func(string) onnx.DataType { return onnx.Float }})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range e.Nodes {
		fmt.Println(p.Name, "makes", p.Outputs[0])
	}

	n.SetAttribute(onnx.IntAttr("beta", 2))
	_, err = gate.Expand(n, fused.Context{})
	fmt.Println(err)
	// Output:
	// layer 1 (its Mul 1) makes y/rope-rewrite/FastGate/2
	// layer 1 (its Sigmoid 2) makes y/rope-rewrite/FastGate/3
	// layer 1 (its Mul 3) makes y
	// the node has the attribute beta, which is unknown for FastGate
}
