package site

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// A router's softmax over a product with quantised weights is no attention, although
// the scale of that product comes from the output of an attention.
func TestQuantisedRouter(t *testing.T) {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "x", Type: onnx.Float}}
	m.Graph.Outputs = []*onnx.ValueInfo{{Name: "out"}}
	m.Graph.Initializers = []*onnx.Tensor{
		onnx.NewTensor("weight", onnx.Int8, []int64{2, 2}, []byte{1, 2, 3, 4}),
		ir.Float32Tensor("scale", []int64{}, 0.5),
	}
	node := func(op string, inputs []string, outputs ...string) {
		m.Graph.Nodes = append(m.Graph.Nodes, onnx.NewNode(op, inputs, outputs))
	}
	node("Transpose", []string{"x"}, "xt")
	node("MatMul", []string{"x", "xt"}, "scores")
	node("Softmax", []string{"scores"}, "p")
	node("MatMul", []string{"p", "x"}, "hidden")
	node("DynamicQuantizeLinear", []string{"hidden"}, "q", "q_scale", "q_zero")
	node("MatMulInteger", []string{"q", "weight", "q_zero"}, "sum")
	m.Graph.Nodes = append(m.Graph.Nodes, ir.Cast("sum", "sum_float", onnx.Float))
	node("Mul", []string{"q_scale", "scale"}, "factor")
	node("Mul", []string{"sum_float", "factor"}, "logits")
	node("Softmax", []string{"logits"}, "out")
	g, err := graph.New(m)
	if err != nil {
		t.Fatal(err)
	}
	found := Find(g)
	if len(found) != 1 || found[0].Refusal != nil || found[0].Core.Softmax.Outputs[0] != "p" {
		t.Errorf("%d attentions are found (%+v), the one of the scores was expected", len(found), found)
	}
}
