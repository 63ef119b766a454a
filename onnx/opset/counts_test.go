package opset_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
)

// Every model of the tests has as many inputs and outputs as its operators take.
func TestCountsOfRealExports(t *testing.T) {
	files, err := filepath.Glob("../../testdata/*/*/model.onnx")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d models (%v)", len(files), err)
	}
	for _, file := range files {
		m, err := onnx.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := opset.CheckCounts(m); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		m.Close()
	}
}

func TestCounts(t *testing.T) {
	for want, n := range map[string]*onnx.Node{
		"":                                       onnx.NewNode("Add", []string{"a", "b"}, []string{"c"}),
		"has 1 inputs, and the operator":         onnx.NewNode("Add", []string{"a"}, []string{"c"}),
		"has 3 inputs, and the operator takes 2": onnx.NewNode("Add", []string{"a", "b", "a"}, []string{"c"}),
		"has 0 inputs, and the operator takes 1 or more":   onnx.NewNode("Concat", nil, []string{"c"}, onnx.IntAttr("axis", 0)),
		"has 0 outputs, and the operator gives 1":          onnx.NewNode("Neg", []string{"a"}, nil),
		"has 4 inputs, and the operator takes 1 to 3":      onnx.NewNode("Clip", []string{"a", "", "", ""}, []string{"c"}),
		"node 0 (Mul \"\") has 1 inputs, and the operator": onnx.NewNode("If", []string{"a"}, []string{"c"}, onnx.GraphAttr("then_branch", &onnx.Graph{Nodes: []*onnx.Node{onnx.NewNode("Mul", []string{"a"}, []string{"d"})}})),
	} {
		for version, checked := range map[int64]bool{18: true, 1: false, 1000: false} {
			m := onnx.New()
			m.RequireOpset("", version)
			m.Graph.InsertNode(nil, n)
			err := opset.CheckCounts(m)
			if want != "" && checked != (err != nil && strings.Contains(err.Error(), want)) || want == "" && err != nil {
				t.Errorf("version %d: %v; %q was expected", version, err, want)
			}
		}
	}
}
