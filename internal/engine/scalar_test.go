package engine

import (
	"context"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Numbers without dimensions are fed.
func TestScalars(t *testing.T) {
	testruntime.Require(t)
	eng, err := NewLocal(Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for _, typ := range []onnx.DataType{onnx.Int64, onnx.Int32, onnx.Float, onnx.Bool} {
		m := onnx.New()
		m.RequireIR(8)
		m.RequireOpset("", 18)
		x := onnx.NewValueInfo("x", typ)
		x.HasShape = true
		m.Graph.AddInput(x)
		m.Graph.AddOutput(&onnx.ValueInfo{Name: "y"})
		m.Graph.AddInitializer(constant("one", []int64{1}, Tensor{Type: onnx.Int64, Data: bytesOf([]int64{1})}))
		m.Graph.Nodes = []*onnx.Node{
			onnx.NewNode("Cast", []string{"x"}, []string{"number"}, onnx.IntAttr("to", int64(onnx.Float))),
			onnx.NewNode("Reshape", []string{"number", "one"}, []string{"y"}),
		}
		data, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		s, err := eng.Load(t.Context(), Model{Bytes: data, Inputs: []string{"x"}, Outputs: []string{"y"}})
		if err != nil {
			t.Fatal(err)
		}
		feed, err := Integers(typ, []int64{1})
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Run(context.Background(), map[string]Tensor{"x": feed})
		if err != nil || out["y"].Float32s()[0] != 1 {
			t.Errorf("%v: got %v, %v", typ, out, err)
		}
		s.Close()
	}
}
