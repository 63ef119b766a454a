package onnx_test

import (
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// What a graph computes changes its digest; weights, metadata and where the file
// stands do not.
func TestDigest(t *testing.T) {
	build := func(change func(m *onnx.Model)) *onnx.Model {
		m := onnx.New()
		m.RequireOpset("", 17)
		m.Graph.Nodes = []*onnx.Node{onnx.NewNode("Add", []string{"x", "w"}, []string{"y"})}
		m.Graph.AddInput(onnx.NewValueInfo("x", onnx.Float, onnx.Dim{Param: "n"}))
		m.Graph.AddInitializer(onnx.NewTensor("w", onnx.Float, []int64{4096}, make([]byte, 4*4096)))
		m.Graph.AddInitializer(onnx.NewTensor("small", onnx.Float, []int64{1}, []byte{1, 2, 3, 4}))
		change(m)
		return m
	}
	weight := func(i int, raw []byte) func(m *onnx.Model) {
		return func(m *onnx.Model) {
			old := m.Graph.Initializers[i]
			m.Graph.Initializers[i] = onnx.NewTensor(old.Name, old.Type, old.Dims, raw)
		}
	}
	other := make([]byte, 4*4096)
	other[9] = 1
	want := build(func(*onnx.Model) {}).Digest()
	for what, c := range map[string]struct {
		same   bool
		change func(m *onnx.Model)
	}{
		"nothing":             {true, func(*onnx.Model) {}},
		"metadata":            {true, func(m *onnx.Model) { m.SetMetadata("a", "b") }},
		"producer":            {true, func(m *onnx.Model) { m.ProducerName = "someone" }},
		"weights":             {true, weight(0, other)},
		"the name of weights": {false, func(m *onnx.Model) { m.Graph.Initializers[0].Name = "v" }},
		"a small constant":    {false, weight(1, []byte{1, 2, 3, 5})},
		"an op":               {false, func(m *onnx.Model) { m.Graph.Nodes[0].OpType = "Mul" }},
		"an attribute":        {false, func(m *onnx.Model) { m.Graph.Nodes[0].SetAttribute(onnx.IntAttr("axis", 1)) }},
		"an operator set":     {false, func(m *onnx.Model) { m.RequireOpset("", 18) }},
		"an input's shape":    {false, func(m *onnx.Model) { m.Graph.Inputs[0].Shape[0].Param = "m" }},
	} {
		if got := build(c.change).Digest(); (got == want) != c.same {
			t.Errorf("%s changed: the digest is the same %v, want %v", what, got == want, c.same)
		}
	}
	// Saved and opened again it is the same.
	m := build(func(*onnx.Model) {})
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	opened, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if opened.Digest() != want {
		t.Error("saved and opened again it has another digest")
	}
}
