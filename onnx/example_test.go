package onnx_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Build a model, save it, open it again and change one node.
func Example() {
	dir, err := os.MkdirTemp("", "onnx-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 17)
	m.Graph.Name = "scale"
	m.Graph.AddInput(onnx.NewValueInfo("x", onnx.Float, onnx.Dim{Param: "batch"}, onnx.Dim{Value: 64}))
	m.Graph.AddOutput(onnx.NewValueInfo("y", onnx.Float, onnx.Dim{Param: "batch"}, onnx.Dim{Value: 64}))
	m.Graph.AddInitializer(onnx.NewTensor("factor", onnx.Float, nil, []byte{0, 0, 0, 0x3f}))
	m.Graph.InsertNode(nil, onnx.NewNode("Mul", []string{"x", "factor"}, []string{"y"}))
	if err := m.Save(filepath.Join(dir, "scale.onnx"), onnx.SaveOptions{}); err != nil {
		log.Fatal(err)
	}

	m, err = onnx.Open(filepath.Join(dir, "scale.onnx"))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	factor, err := m.Graph.Initializer("factor").Floats()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Graph.Inputs[0].Shape, factor)

	m.Graph.Nodes[0].OpType = "Div"
	if err := m.Save(filepath.Join(dir, "divided.onnx"), onnx.SaveOptions{}); err != nil {
		log.Fatal(err)
	}
	for n := range m.Graph.AllNodes() {
		fmt.Println(n.OpType, n.Inputs, "to", n.Outputs)
	}
	// Output:
	// [batch 64] [0.5]
	// Div [x factor] to [y]
}
