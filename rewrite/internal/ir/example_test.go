package ir_test

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A Builder makes nodes that read the length of a value: its second dimension.
func ExampleBuilder() {
	b := ir.Builder{Stem: "length_of_ids"}
	fmt.Println(b.NamedSize("length", "input_ids", 1))
	for _, n := range b.Nodes {
		fmt.Println(n.OpType, slices.Collect(ir.Uses(n)), ir.Standard(n, "Shape"))
	}

	m := onnx.New()
	b.Into(m.Graph, nil)
	fmt.Println(len(m.Graph.Nodes), "nodes,", len(m.Graph.Initializers), "constants")
	// Output:
	// length_of_ids/length
	// Shape [input_ids] true
	// Slice [length_of_ids/length_dims length_of_ids/length_from length_of_ids/length_to] false
	// Squeeze [length_of_ids/length_dim] false
	// 3 nodes, 2 constants
}
