package float16_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// A product in bfloat16 is computed in float32 and rounded.
func ExampleEmulate() {
	m := onnx.New()
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "x", Type: onnx.BFloat16}}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "y", Type: onnx.BFloat16}}
	m.Graph.Nodes = []*onnx.Node{onnx.NewNode("Mul", []string{"x", "x"}, []string{"y"})}
	fmt.Println(float16.Emulate(m, onnx.BFloat16))
	for _, n := range m.Graph.Nodes {
		fmt.Println(n.OpType)
	}
	// Output:
	// true
	// Cast
	// Mul
	// Cast
}
