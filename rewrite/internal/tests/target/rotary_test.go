package target_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// withRotary opens a model to which another program gave a node of Rotary with its fallback.
func withRotary(t *testing.T) *onnx.Model {
	t.Helper()
	m, err := onnx.Open(kit.Model("llama__optimum"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	m.Graph.AddInput(&onnx.ValueInfo{Name: "heads", Type: onnx.Float, Shape: []onnx.Dim{{Value: 1}, {Value: 3}, {Value: 2}, {Value: 8}}})
	n := onnx.NewNode(customop.RotarySpec.Name, []string{"heads"}, []string{"turned"}, onnx.IntAttr("spec_version", 7), onnx.FloatsAttr("frequencies", 1, 0.5))
	n.Name, n.Domain = "another rotation", customop.Domain
	m.Graph.InsertNode(nil, n)
	m.Graph.AddOutput(&onnx.ValueInfo{Name: "turned", Type: onnx.Float, Shape: []onnx.Dim{{Value: 1}, {Value: 3}, {Value: 2}, {Value: 8}}})
	m.RequireOpset(customop.Domain, 1)
	if _, err := definition.Write(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A node of Rotary that another program put into a model is none of an earlier rewrite: it stays,
// and has its fallback beside that of the attention layers.
func TestModelWithRotary(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	m := withRotary(t)
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sites {
		if s.Status != rewrite.Rewritten {
			t.Errorf("layer %d is %s: %s", s.Layer, s.Status, s.Reason)
		}
	}
	var names []string
	for n := range m.Graph.AllNodes() {
		if n.Domain == customop.Domain {
			names = append(names, n.OpType)
		}
	}
	if all := strings.Join(names, " "); !strings.Contains(all, "Rotary ") && !strings.HasSuffix(all, "Rotary") {
		t.Errorf("the model's ops are %s", all)
	}
	functions := map[string]bool{}
	for _, f := range definition.Of(m) {
		functions[f.Name] = true
	}
	if !functions["Rotary"] || !functions["RotaryAttention"] {
		t.Errorf("the model has the functions %v", functions)
	}
}

// A function of Rotary that this version would not write is not removed in silence.
func TestForeignRotary(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	m := withRotary(t)
	for _, n := range definition.Of(m)[0].Nodes {
		if n.OpType == "Sin" {
			n.OpType = "Cos"
		}
	}
	if _, err := kit.Rewrite(context.Background(), m, rewrite.Options{}); !errors.Is(err, rewrite.ErrForeignFallback) || !strings.Contains(err.Error(), "start from the original file") {
		t.Errorf("the error is %v", err)
	}
}
