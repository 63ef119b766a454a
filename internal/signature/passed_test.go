package signature_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// A number without dimensions that the model only gives back is fed, and not fetched. One that something reads is not.
func TestPassed(t *testing.T) {
	model := func(more ...*onnx.Node) *onnx.Model {
		m := &onnx.Model{Graph: &onnx.Graph{}}
		g := m.Graph
		scalar := onnx.NewValueInfo("window", onnx.Int64)
		scalar.HasShape = true
		back := onnx.NewValueInfo("window_back", onnx.Int64)
		back.HasShape = true
		g.Inputs = []*onnx.ValueInfo{onnx.NewValueInfo("input_ids", onnx.Int64, onnx.Dim{Param: "b"}, onnx.Dim{Param: "n"}), scalar}
		g.Outputs = []*onnx.ValueInfo{onnx.NewValueInfo("logits", onnx.Float, onnx.Dim{Param: "b"}, onnx.Dim{Param: "n"}, onnx.Dim{Value: 5}), back}
		g.Nodes = append(more, onnx.NewNode("Identity", []string{"window"}, []string{"window_back"}))
		return m
	}
	s, err := signature.Read(model(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !s.Takes(signature.Passed) || len(s.Outputs) != 1 {
		t.Errorf("the inputs are %v, the outputs %v", s.Inputs, s.Outputs)
	}
	values, dims := signature.Call{Batch: 1, Length: 2}.Feed(s.Inputs[1])
	if len(values) != 1 || len(dims) != 0 {
		t.Errorf("it is fed %v%v", values, dims)
	}
	if _, err := signature.Read(model(onnx.NewNode("Neg", []string{"window"}, []string{"x"})), ""); err == nil {
		t.Error("a number that is read is fed")
	}
}
