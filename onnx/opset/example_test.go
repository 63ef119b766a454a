package opset_test

import (
	"fmt"
	"log"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
)

// Raise a model whose mean names its axes by an attribute, as it was done before version 18.
func Example() {
	m := onnx.New()
	m.RequireIR(7)
	m.RequireOpset("", 14)
	m.Graph.AddInput(onnx.NewValueInfo("x", onnx.Float, onnx.Dim{Param: "batch"}, onnx.Dim{Value: 64}))
	m.Graph.AddOutput(onnx.NewValueInfo("y", onnx.Float, onnx.Dim{Param: "batch"}))
	m.Graph.InsertNode(nil, onnx.NewNode("ReduceMean", []string{"x"}, []string{"y"}, onnx.IntsAttr("axes", -1), onnx.IntAttr("keepdims", 0)))

	raised, err := opset.Raise(m, 18)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("from", raised.From, "to", raised.To, "nodes:", raised.Converted)
	for _, n := range m.Graph.Nodes {
		fmt.Println(n.OpType, n.Inputs, "to", n.Outputs)
	}
	fmt.Println("format", m.IRVersion)
	// Output:
	// from 14 to 18 nodes: 1
	// Constant [] to [axes]
	// ReduceMean [x axes] to [y]
	// format 8
}
