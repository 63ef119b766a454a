package onnxcast_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/fusedtest"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused/onnxcast"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

func node() *onnx.Node { return onnx.NewNode("CastLike", []string{"x", "like"}, []string{"y"}) }

// of tells one type for the second value.
func of(to onnx.DataType) fused.Context {
	return fused.Context{Type: func(v string) onnx.DataType {
		if v == "like" {
			return to
		}
		return onnx.Float
	}}
}

// The expansion gives what ONNX Runtime's kernel gives, and does not read the second value.
func TestAgainstKernel(t *testing.T) {
	testruntime.Require(t)
	n := node()
	e, err := onnxcast.Adapter().Expand(n, of(onnx.Float))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range e.Nodes {
		if strings.Contains(fmt.Sprint(part.Inputs), "like") {
			t.Errorf("%s reads %v", part.OpType, part.Inputs)
		}
	}
	fusedtest.Agree(t, n, e, map[string]engine.Tensor{"x": engine.Float32s([]float32{0.25, -3, 1e30}, 3), "like": engine.Float32s([]float32{7}, 1)}, "y", 0)
}

// The attributes that Cast has as well are kept.
func TestAttributes(t *testing.T) {
	n := node()
	n.SetAttribute(onnx.IntAttr("saturate", 0))
	e, err := onnxcast.Adapter().Expand(n, of(onnx.Float16))
	if err != nil {
		t.Fatal(err)
	}
	cast := e.Nodes[0]
	if len(e.Nodes) != 1 || cast.OpType != "Cast" || cast.Int("to", 0) != int64(onnx.Float16) || cast.Int("saturate", 1) != 0 {
		t.Errorf("it becomes %v with %v", cast.OpType, cast.Attributes)
	}
}

// Without the type there is nothing that it could be cast to.
func TestUnknownTypeStays(t *testing.T) {
	n := node()
	e, err := onnxcast.Adapter().Expand(n, of(onnx.Undefined))
	if err != nil || len(e.Nodes) != 1 || e.Nodes[0] != n {
		t.Errorf("it becomes %v, %v", e, err)
	}
}

func ExampleAdapter() {
	e, err := onnxcast.Adapter().Expand(node(), of(onnx.Float16))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Nodes[0].OpType, e.Nodes[0].Inputs, onnx.DataType(e.Nodes[0].Int("to", 0)))
	// Output: Cast [x] float16
}
