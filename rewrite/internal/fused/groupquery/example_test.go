package groupquery_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/groupquery"
)

// What the adapter makes of a node, and what it says of one that would end ONNX
// Runtime's process.
func ExampleAdapter() {
	node := onnx.NewNode("GroupQueryAttention",
		[]string{"qkv", "", "", "past_key", "past_value", "last", "total"}, []string{"out", "present_key", "present_value"},
		onnx.IntAttr("num_heads", 4), onnx.IntAttr("kv_num_heads", 2))
	context := fused.Context{
		Type:     func(string) onnx.DataType { return onnx.Float },
		Width:    func(name string) (int64, bool) { return (4 + 2*2) * 16, name == "qkv" },
		Constant: func(string) *onnx.Tensor { return nil },
	}
	expansion, err := groupquery.Adapter().Expand(node, context)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range expansion.Nodes {
		if n.OpType == "Concat" || n.OpType == "Softmax" {
			fmt.Println(n.OpType)
		}
	}
	fmt.Println("counted by", expansion.Cache.Last, "and", expansion.Cache.Total)

	node.SetAttribute(onnx.IntAttr("num_heads", -4))
	_, err = groupquery.Adapter().Expand(node, context)
	fmt.Println(err)
	// Output:
	// Concat
	// Concat
	// Softmax
	// counted by last and total
	// its attribute num_heads is -4, which is outside 1 to 65536
}
