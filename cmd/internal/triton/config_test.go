package triton_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/triton"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

func ExampleConfig() {
	m := onnx.New()
	m.Graph.Inputs = []*onnx.ValueInfo{
		onnx.NewValueInfo("input_ids", onnx.Int64, onnx.Dim{Param: "batch"}, onnx.Dim{Param: "length"}),
		onnx.NewValueInfo("past", onnx.Float16, onnx.Dim{Param: "batch"}, onnx.Dim{Value: 2}, onnx.Dim{Param: "past"}, onnx.Dim{Value: 64}),
	}
	m.Graph.Outputs = []*onnx.ValueInfo{onnx.NewValueInfo("length", onnx.Int32)}
	text, err := triton.Config("chat", m, "/models/chat/librope_ops.so")
	fmt.Print(text, err)
	// Output:
	// name: "chat"
	// backend: "onnxruntime"
	// default_model_filename: "model.onnx"
	// max_batch_size: 0
	// model_operations { op_library_filename: "/models/chat/librope_ops.so" }
	// input { name: "input_ids" data_type: TYPE_INT64 dims: [ -1, -1 ] }
	// input { name: "past" data_type: TYPE_FP16 dims: [ -1, 2, -1, 64 ] }
	// output { name: "length" data_type: TYPE_INT32 dims: [ 1 ] }
	// instance_group { kind: KIND_CPU }
	// <nil>
}

func TestUnserved(t *testing.T) {
	m := onnx.New()
	m.Graph.Inputs = []*onnx.ValueInfo{onnx.NewValueInfo("x", onnx.Undefined)}
	if _, err := triton.Config("m", m, ""); err == nil || !strings.Contains(err.Error(), "input x is of a type") {
		t.Error(err)
	}
}
