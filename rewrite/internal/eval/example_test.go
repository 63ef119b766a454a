package eval_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// The piece from a query to its rotation has the nodes between, the integer input that
// they read, and no weight. From a boundary before the weight it cannot be taken.
func ExampleExtract() {
	m := onnx.New()
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "position", Type: onnx.Int64}, {Name: "hidden", Type: onnx.Float}}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "scaled"}}
	m.Graph.Initializers = []*onnx.Tensor{ir.Float32Tensor("weight", []int64{2, 2}, 1, 0, 0, 1)}
	m.Graph.Nodes = []*onnx.Node{
		onnx.NewNode("MatMul", []string{"hidden", "weight"}, []string{"query"}),
		onnx.NewNode("Cast", []string{"position"}, []string{"angle"}, onnx.IntAttr("to", int64(onnx.Float))),
		onnx.NewNode("Cos", []string{"angle"}, []string{"cos"}),
		onnx.NewNode("Mul", []string{"query", "cos"}, []string{"scaled"}),
	}
	g, err := graph.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}

	p, err := eval.Extract(g, []string{"scaled"}, []string{"query"})
	fmt.Println(len(p.Nodes), "nodes, reading", p.Inputs[0].Name, "and", p.Boundaries, err)
	_, err = eval.Extract(g, []string{"scaled"}, []string{"hidden"})
	fmt.Println(err)
	// Output:
	// 3 nodes, reading position and [query] <nil>
	// the part reads "query", the product with weights at MatMul making "query"
}
