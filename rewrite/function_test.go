package rewrite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// TestFunctions: a model that hides its attention in functions of its own is not
// said to have none without saying why.
func TestFunctions(t *testing.T) {
	needRuntime(t)
	p := newPatient(t, "llama__dynamo18-nocache")
	for _, n := range p.all("Softmax") {
		n.Domain = "local"
	}
	p.RequireOpset("local", 1)
	p.Functions = []*onnx.Function{{
		Name: "Softmax", Domain: "local", Inputs: []string{"x"}, Outputs: []string{"y"}, AttributeNames: []string{"axis"},
		Nodes: []*onnx.Node{onnx.NewNode("Softmax", []string{"x"}, []string{"y"})}, Opsets: []onnx.Opset{{Domain: "", Version: 18}},
	}}
	_, err := Rewrite(context.Background(), open(t, p.save()), Options{})
	if !errors.Is(err, ErrNoAttention) || !strings.Contains(err.Error(), "2 nodes call them") || !strings.Contains(err.Error(), "inline them first") {
		t.Errorf("the error is %v", err)
	}
}
