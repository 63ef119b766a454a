package customop_test

import (
	"slices"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// The library computes the op under each of its names.
func TestNames(t *testing.T) {
	p := filled(cases()["left padding"], 1)
	in := feedsOf(p, false)
	for _, name := range customop.RotaryAttentionSpec.OpTypes() {
		node := nodeOf(t, p)
		node.OpType = name
		s, err := newSession(t, node, typesOf(in), 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := s.run(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compare(t, p, false, got)
	}
	node := nodeOf(t, p)
	node.OpType = "RotaryAttention_9"
	if _, err := newSession(t, node, typesOf(in), 1); err == nil {
		t.Error("the library knows a ninth name")
	}
}

// Where the library is registered its kernel computes the node, whatever function the model
// has; elsewhere the function does.
func TestKernelBeforeFunction(t *testing.T) {
	library := testruntime.Require(t)
	p := filled(problem(attention(4, 4, 16), 1, 7, 0), 1)
	in := feedsOf(p, false)
	node := nodeOf(t, p)
	f := &onnx.Function{Name: node.OpType, Domain: node.Domain, Opsets: []onnx.Opset{{Version: opset}}}
	for _, v := range customop.RotaryAttentionSpec.Inputs[:len(node.Inputs)] {
		f.Inputs = append(f.Inputs, v.Name)
	}
	for i, v := range customop.RotaryAttentionSpec.Outputs[:len(node.Outputs)] {
		f.Outputs = append(f.Outputs, v.Name)
		f.Nodes = append(f.Nodes, onnx.NewNode("Identity", []string{"query"}, []string{f.Outputs[i]}))
	}
	for _, a := range node.Attributes {
		f.AttributeNames = append(f.AttributeNames, a.Name)
	}
	model, inputs, outputs := modelOf(t, []*onnx.Node{node}, typesOf(in), opset, f)
	run := func(register func(*ort.SessionOptions) error) map[string]tensor {
		s, err := open(t, model, inputs, outputs, 1, register)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.run(in)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	with := run(func(o *ort.SessionOptions) error { return customop.Require(o, customop.Options{Library: library}, 0) })
	compare(t, p, false, with)
	without := run(func(*ort.SessionOptions) error { return nil })
	if !slices.Equal(without["output"].floats, in["query"].floats) {
		t.Error("without the library the function was not taken")
	}
}

func TestRequireRefuses(t *testing.T) {
	library := testruntime.Require(t)
	options, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer options.Destroy()
	for _, c := range []struct {
		library string
		spec    int
		want    string
	}{
		{library, customop.SpecVersion + 1, "knows specifications up to"},
		{"/nowhere/librope_ops.so", 0, "/nowhere/librope_ops.so"},
	} {
		if err := customop.Require(options, customop.Options{Library: c.library}, c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, specification %d: the error is %v", c.library, c.spec, err)
		}
	}
}
