package lastlogits_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lastlogits"
)

// The head is found behind what is done to the logits, and it is left alone where the
// logits of one token depend on others.
func Example() {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	dims := []onnx.Dim{{Param: "batch"}, {Param: "length"}, {Value: 32}}
	m.Graph.AddInput(onnx.NewValueInfo("hidden", onnx.Float, dims...))
	m.Graph.AddInitializer(onnx.NewTensor("vocabulary", onnx.Float, []int64{32, 100}, make([]byte, 4*32*100)))
	m.Graph.Nodes = []*onnx.Node{
		onnx.NewNode("MatMul", []string{"hidden", "vocabulary"}, []string{"scores"}),
		onnx.NewNode("Tanh", []string{"scores"}, []string{"logits"}),
	}
	m.Graph.AddOutput(onnx.NewValueInfo("logits", onnx.Float, onnx.Dim{Param: "batch"}, onnx.Dim{Param: "length"}, onnx.Dim{Value: 100}))
	g, err := graph.New(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := lastlogits.Find(g)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.Output, "of", h.Hidden)
	if err := h.Write(m, "places"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Graph.Inputs[1].Name, m.Graph.Outputs[0].Shape[1].Value)
	// Output:
	// logits of hidden
	// places 1
}
