package definition_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

func ExampleWrite() {
	m := onnx.New()
	m.RequireOpset("", 17)
	m.RequireOpset(customop.Domain, 1)
	node := onnx.NewNode("RotaryAttention", []string{"query", "key", "value"}, []string{"output"},
		onnx.IntAttr("spec_version", 1), onnx.IntAttr("num_heads", 2), onnx.IntAttr("kv_num_heads", 1))
	node.Domain = customop.Domain
	m.Graph.InsertNode(nil, node)

	functions, err := definition.Write(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	f := functions[0]
	fmt.Println(f.Domain, f.Name, f.Inputs, f.Outputs)
	last := f.Nodes[len(f.Nodes)-1]
	fmt.Println(last.Outputs[0], "=", last.OpType, last.Inputs)
	// Output:
	// rope.rewrite RotaryAttention [query key value] [output]
	// output = CastLike [mixed_heads query]
}
