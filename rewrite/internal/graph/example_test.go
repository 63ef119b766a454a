package graph_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A product with a weight makes a hidden state; the size of the ids is no more than
// a size.
func Example() {
	m := onnx.New()
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "ids", Type: onnx.Int64}}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "query"}, {Name: "size"}}
	m.Graph.Initializers = []*onnx.Tensor{
		ir.Float32Tensor("table", []int64{2, 2}, 1, 2, 3, 4),
		ir.Float32Tensor("weight", []int64{2, 2}, 1, 0, 0, 1),
	}
	m.Graph.Nodes = []*onnx.Node{
		onnx.NewNode("Gather", []string{"table", "ids"}, []string{"embedded"}),
		onnx.NewNode("MatMul", []string{"embedded", "weight"}, []string{"query"}),
		onnx.NewNode("Shape", []string{"ids"}, []string{"size"}),
		onnx.NewNode("Cast", []string{"ids"}, []string{"nobody reads this"}, onnx.IntAttr("to", int64(onnx.Float))),
	}

	g, err := graph.New(m)
	fmt.Println(len(g.Nodes), "live nodes,", err)
	fmt.Println("query is data:", g.IsData("query"))
	fmt.Println("size is a size:", g.Classes["size"] == graph.ShapeClass)
	fmt.Println("weight is a constant:", g.Classes["weight"] == graph.ConstantClass)
	// Output:
	// 3 live nodes, <nil>
	// query is data: true
	// size is a size: true
	// weight is a constant: true
}
