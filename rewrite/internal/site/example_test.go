package site_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// An attention over a hidden state x, whose query and key are multiplied by numbers
// that depend on positions. Its site begins at the values before that product.
func Example() {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "x", Type: onnx.Float}, {Name: "position_ids", Type: onnx.Int64}}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "attention"}}
	m.Graph.Initializers = []*onnx.Tensor{
		ir.Float32Tensor("weight", []int64{2, 2}, 1, 2, 3, 4),
		ir.Float32Tensor("cosines", []int64{3, 2}, 1, 1, 0.5, 0.9, -0.4, 0.7),
	}
	add := func(op string, inputs []string, output string) {
		m.Graph.Nodes = append(m.Graph.Nodes, onnx.NewNode(op, inputs, []string{output}))
	}
	add("MatMul", []string{"x", "weight"}, "query")
	add("MatMul", []string{"x", "weight"}, "key")
	add("MatMul", []string{"x", "weight"}, "value")
	add("Gather", []string{"cosines", "position_ids"}, "cos")
	add("Mul", []string{"query", "cos"}, "rotated_query")
	add("Mul", []string{"key", "cos"}, "rotated_key")
	add("Transpose", []string{"rotated_key"}, "transposed_key")
	add("MatMul", []string{"rotated_query", "transposed_key"}, "scores")
	add("Softmax", []string{"scores"}, "probabilities")
	add("MatMul", []string{"probabilities", "value"}, "attention")
	g, err := graph.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range site.Find(g) {
		s, refusal := site.Delimit(g, *c.Core)
		if refusal != nil {
			fmt.Println(refusal)
			continue
		}
		fmt.Println("from", s.Boundaries(), "to", s.Results())
	}
	// Output: from [query key value] to [attention]
}
