package testmodel_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testmodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

func Example() {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 17)
	m.Graph.Name = "sum"
	m.Graph.AddInput(&onnx.ValueInfo{Name: "x", Type: onnx.Int64})
	m.Graph.AddOutput(&onnx.ValueInfo{Name: "y"})
	m.Graph.Nodes = []*onnx.Node{onnx.NewNode("Add", []string{"x", "x"}, []string{"y"})}
	out, err := testmodel.Run(m, map[string]engine.Tensor{"x": engine.Int64s([]int64{1, 2, 3}, 3)}, "y")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out["y"].Values())
	// Output:
	// [2 4 6]
}
