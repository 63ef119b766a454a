package graph

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// TestRankOfExpand: an exporter expands to the sizes [batch, −1] and puts ones where they are −1.
func TestRankOfExpand(t *testing.T) {
	m := onnx.New()
	m.RequireOpset("", 17)
	m.Graph.AddInput(onnx.NewValueInfo("ids", onnx.Int64, onnx.Dim{Param: "batch"}, onnx.Dim{Param: "length"}))
	for name, list := range map[string][]int64{"first": {0}, "minus": {-1}} {
		m.Graph.AddInitializer(ir.Int64Tensor(name, []int64{1}, list...))
	}
	m.Graph.AddInitializer(ir.Int64Tensor("minus/number", nil, -1))
	m.Graph.AddInitializer(ir.Int64Tensor("row", []int64{1, 4}, 0, 1, 2, 3))
	m.Graph.Nodes = []*onnx.Node{
		onnx.NewNode("Shape", []string{"ids"}, []string{"shape"}),
		onnx.NewNode("Gather", []string{"shape", "first"}, []string{"batch"}),
		onnx.NewNode("Concat", []string{"batch", "minus"}, []string{"sizes"}, onnx.IntAttr("axis", 0)),
		onnx.NewNode("Shape", []string{"sizes"}, []string{"count"}),
		onnx.NewNode("ConstantOfShape", []string{"count"}, []string{"ones"}, onnx.TensorAttr("value", ir.Int64Tensor("", []int64{1}, 1))),
		onnx.NewNode("Mul", []string{"ones", "minus/number"}, []string{"minuses"}),
		onnx.NewNode("Equal", []string{"sizes", "minuses"}, []string{"open"}),
		onnx.NewNode("Where", []string{"open", "ones", "sizes"}, []string{"closed"}),
		onnx.NewNode("Expand", []string{"row", "closed"}, []string{"positions"}),
		onnx.NewNode("ConstantOfShape", []string{"shape"}, []string{"grid"}),
		onnx.NewNode("Expand", []string{"row", "batch"}, []string{"same"}),
	}
	g, err := New(m)
	if err != nil {
		t.Fatal(err)
	}
	h := newShapeHints(g)
	for value, want := range map[string]int{"positions": 2, "grid": 2, "same": 2} {
		if got, known := h.rank(value); got != want || !known {
			t.Errorf("%q has %d dimensions (known: %t), %d were expected", value, got, known, want)
		}
	}
	if l := h.length("grid"); l != unknown {
		t.Errorf("%q is a list of %d", "grid", l)
	}
}

// TestRankOfAttention: ONNX's Attention says its own dimensions where nothing says those of its query.
func TestRankOfAttention(t *testing.T) {
	m := onnx.New()
	m.RequireOpset("", 23)
	heads := []*onnx.Attribute{onnx.IntAttr("q_num_heads", 4), onnx.IntAttr("kv_num_heads", 2)}
	for _, name := range []string{"q", "k", "v"} {
		m.Graph.AddInput(&onnx.ValueInfo{Name: name, Type: onnx.Float})
	}
	m.Graph.AddInput(onnx.NewValueInfo("q4", onnx.Float, make([]onnx.Dim, 4)...))
	m.Graph.Nodes = []*onnx.Node{
		onnx.NewNode("Attention", []string{"q", "k", "v"}, []string{"flat", "keys", "values", "scores"}, heads...),
		onnx.NewNode("Attention", []string{"q4", "k", "v"}, []string{"with heads"}, heads...),
		onnx.NewNode("Attention", []string{"q", "k", "v"}, []string{"unknown"}),
	}
	g, err := buildGraph(m, m.Graph.Nodes, nil, View{})
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]int{"flat": 3, "keys": 4, "values": 4, "scores": 4, "with heads": 4, "unknown": unknown} {
		if got, _ := g.Rank(value); got != want {
			t.Errorf("%q has %d dimensions, %d were expected", value, got, want)
		}
	}
}
