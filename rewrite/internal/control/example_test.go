package control_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/control"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A window of 4,096 is a number that a copy replaces by each of 2 to 5.
func ExampleOf() {
	m := ir.EmptyModel(&onnx.Model{})
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "distance", Type: onnx.Int64, Shape: []onnx.Dim{{}}}}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "hidden"}}
	m.Graph.Initializers = []*onnx.Tensor{ir.Int64Tensor("window", []int64{}, 4096)}
	m.Graph.Nodes = []*onnx.Node{onnx.NewNode("GreaterOrEqual", []string{"distance", "window"}, []string{"hidden"})}
	g, err := graph.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := eval.Extract(g, []string{"hidden"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	part := control.Of(p, "")
	fmt.Println(part.Runs)
	for c := range part.Copies(func(int64) bool { return false }) {
		fmt.Print(c.Of(4096), " ")
	}
	// Output:
	// [[4096]]
	// 2 3 4 5
}
