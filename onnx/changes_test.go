package onnx_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// Whatever is changed alone in a model that was read is written as in a model that was
// made so, which the generated code reads.
func TestEachFieldIsWritten(t *testing.T) {
	build := func() *onnx.Model {
		inner := &onnx.Graph{Name: "inner", Nodes: []*onnx.Node{onnx.NewNode("Neg", []string{"x"}, []string{"z"})}}
		node := onnx.NewNode("If", []string{"x", "w"}, []string{"y", "v"}, onnx.IntAttr("axis", 1), onnx.IntAttr("to", 7))
		node.Name, node.Domain, node.Overload = "name", "domain", "overload"
		m := onnx.New()
		m.RequireOpset("", 17)
		m.Graph.Nodes = []*onnx.Node{node, onnx.NewNode("If", nil, nil, onnx.GraphAttr("then_branch", inner))}
		m.Graph.AddInput(onnx.NewValueInfo("x", onnx.Float, onnx.Dim{Param: "n"}, onnx.Dim{Value: 3}))
		return m
	}
	node := func(change func(*onnx.Node)) func(*onnx.Model) {
		return func(m *onnx.Model) { change(m.Graph.Nodes[0]) }
	}
	value := func(change func(*onnx.ValueInfo)) func(*onnx.Model) {
		return func(m *onnx.Model) { change(m.Graph.Inputs[0]) }
	}
	for what, change := range map[string]func(*onnx.Model){
		"nothing":               func(*onnx.Model) {},
		"a node's name":         node(func(n *onnx.Node) { n.Name = "" }),
		"its op":                node(func(n *onnx.Node) { n.OpType = "Loop" }),
		"its domain":            node(func(n *onnx.Node) { n.Domain = "" }),
		"its overload":          node(func(n *onnx.Node) { n.Overload = "other" }),
		"an input":              node(func(n *onnx.Node) { n.Inputs[1] = "" }),
		"fewer inputs":          node(func(n *onnx.Node) { n.Inputs = n.Inputs[:1] }),
		"an output":             node(func(n *onnx.Node) { n.Outputs[1] = "u" }),
		"an attribute":          node(func(n *onnx.Node) { n.Attributes[0].Int = 2 }),
		"an attribute's name":   node(func(n *onnx.Node) { n.Attributes[0].Name = "other" }),
		"no attribute":          node(func(n *onnx.Node) { n.Attributes = nil }),
		"another attribute":     node(func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("to", 1)) }),
		"a new attribute":       node(func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("axis", 2)) }),
		"other order":           node(func(n *onnx.Node) { n.Attributes[0], n.Attributes[1] = n.Attributes[1], n.Attributes[0] }),
		"one of two attributes": node(func(n *onnx.Node) { n.Attributes = n.Attributes[:1] }),
		"a node inside a graph": func(m *onnx.Model) { m.Graph.Nodes[1].Attributes[0].Graph.Nodes[0].OpType = "Abs" },
		"a value's name":        value(func(v *onnx.ValueInfo) { v.Name = "other" }),
		"its type":              value(func(v *onnx.ValueInfo) { v.Type = onnx.Int64 }),
		"a dimension's name":    value(func(v *onnx.ValueInfo) { v.Shape[0].Param = "m" }),
		"a dimension's size":    value(func(v *onnx.ValueInfo) { v.Shape[1].Value = 4 }),
		"no shape":              value(func(v *onnx.ValueInfo) { v.Shape, v.HasShape = nil, false }),
		"no dimensions":         value(func(v *onnx.ValueInfo) { v.Shape = nil }),
	} {
		written := func(m *onnx.Model) *onnxpb.ModelProto {
			change(m)
			p := new(onnxpb.ModelProto)
			if err := proto.Unmarshal(must(m.Marshal()), p); err != nil {
				t.Fatal(err)
			}
			return p
		}
		read := must(onnx.Parse(must(build().Marshal())))
		if got, want := written(read), written(build()); !proto.Equal(got, want) {
			t.Errorf("%s changed: it is written as\n%v\nand should be\n%v", what, got, want)
		}
	}
	// HasShape alone, of a value whose shape has no dimensions.
	scalar := onnx.New()
	scalar.Graph.AddInput(onnx.NewValueInfo("x", onnx.Float))
	read := must(onnx.Parse(must(scalar.Marshal())))
	read.Graph.Inputs[0].HasShape = !read.Graph.Inputs[0].HasShape
	if again := must(onnx.Parse(must(read.Marshal()))); again.Graph.Inputs[0].HasShape != read.Graph.Inputs[0].HasShape {
		t.Error("a shape without dimensions and no shape are written alike")
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
