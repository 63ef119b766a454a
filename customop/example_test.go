package customop_test

import (
	"fmt"
	"log"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// The rotation alone, of packed sequences that stand in a cache already.
func ExampleRotary() {
	node, err := customop.Rotary{
		Query: "q", Key: "k", CuSeqlens: "cu_seqlens", SeqlenOffsets: "cached",
		RotatedQuery: "q_rotated", RotatedKey: "k_rotated",
		TensorFormat: "thd", Frequencies: []float32{1, 0.1, 0.01, 0.001},
	}.Node("layers.0.rotary")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s::%s %q %q\n", node.Domain, node.OpType, node.Inputs, node.Outputs)
	// Output: rope.rewrite::Rotary ["q" "k" "" "cu_seqlens" "cached"] ["q_rotated" "k_rotated"]
}
