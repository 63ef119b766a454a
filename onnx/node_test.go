package onnx_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// reread sends a node through a file.
func reread(t testing.TB, n *onnx.Node) *onnx.Node {
	t.Helper()
	m := onnx.New()
	m.Graph.InsertNode(nil, n)
	again, err := onnx.Parse(marshal(t, m))
	if err != nil {
		t.Fatal(err)
	}
	return again.Graph.Nodes[0]
}

func TestAttributes(t *testing.T) {
	body := &onnx.Graph{Name: "body"}
	n := onnx.NewNode("Op", []string{"a", "", "c"}, []string{"y"},
		onnx.IntAttr("i", -3), onnx.IntAttr("zero", 0), onnx.FloatAttr("f", 0.5), onnx.StringAttr("s", "text"),
		onnx.IntsAttr("is", 1, -2), onnx.FloatsAttr("fs", 1, 2), onnx.StringsAttr("ss", "a", "b"),
		onnx.TensorAttr("t", onnx.NewTensor("", onnx.Int8, []int64{2}, []byte{1, 2})), onnx.GraphAttr("g", body))
	n.Domain = "custom"
	for _, n := range []*onnx.Node{n, reread(t, n), reread(t, n).Clone(), reread(t, reread(t, n).Clone())} {
		if n.Domain != "custom" || !slices.Equal(n.Inputs, []string{"a", "", "c"}) {
			t.Errorf("node is %+v", n)
		}
		if v := n.Int("i", 0); v != -3 {
			t.Errorf("i = %d", v)
		}
		if v := n.Int("zero", 5); v != 0 {
			t.Errorf("zero = %d", v)
		}
		if v := n.Float("f", 0); v != 0.5 {
			t.Errorf("f = %v", v)
		}
		if v := n.Text("s", ""); v != "text" {
			t.Errorf("s = %q", v)
		}
		if v := n.Ints("is"); !slices.Equal(v, []int64{1, -2}) {
			t.Errorf("is = %v", v)
		}
		if v := n.Floats("fs"); !slices.Equal(v, []float32{1, 2}) {
			t.Errorf("fs = %v", v)
		}
		if a := n.Attribute("ss"); len(a.Strings) != 2 || string(a.Strings[1]) != "b" {
			t.Errorf("ss = %q", a.Strings)
		}
		if b, err := n.Tensor("t").Bytes(); err != nil || string(b) != "\x01\x02" {
			t.Errorf("t = %v, %v", b, err)
		}
		if g := n.Graph("g"); g == nil || g.Name != "body" {
			t.Errorf("g = %v", g)
		}
	}
}

func TestAbsentAttributesGiveDefaults(t *testing.T) {
	n := onnx.NewNode("Op", nil, nil, onnx.StringAttr("s", "x"), &onnx.Attribute{Name: "ref", Type: onnx.AttrInt, RefName: "outer"})
	if v := n.Int("s", 4); v != 4 {
		t.Errorf("a string read as the integer %d", v)
	}
	if v := n.Int("ref", 4); v != 4 {
		t.Errorf("a reference to a function's attribute read as %d", v)
	}
	if n.Float("x", 2) != 2 || n.Text("x", "d") != "d" || n.Ints("x") != nil || n.Floats("x") != nil || n.Tensor("x") != nil || n.Graph("x") != nil {
		t.Error("an absent attribute has a value")
	}
	if a := reread(t, n).Attribute("ref"); a.RefName != "outer" || a.Type != onnx.AttrInt {
		t.Errorf("the reference came back as %+v", a)
	}
}

func TestClonesAreIndependent(t *testing.T) {
	n := reread(t, onnx.NewNode("Op", []string{"a"}, []string{"y"}, onnx.IntsAttr("is", 1),
		onnx.GraphAttr("g", &onnx.Graph{Nodes: []*onnx.Node{onnx.NewNode("Inner", nil, []string{"z"})}})))
	c := n.Clone()
	c.Inputs[0] = "b"
	c.Attribute("is").Ints[0] = 2
	c.Graph("g").Nodes[0].OpType = "Other"
	c.SetAttribute(onnx.IntAttr("is", 9))
	if n.Inputs[0] != "a" || n.Ints("is")[0] != 1 || n.Graph("g").Nodes[0].OpType != "Inner" {
		t.Errorf("changing the clone changed the node: %+v", n)
	}
	if got := reread(t, c); got.Int("is", 0) != 9 || len(got.Attributes) != 2 || got.Graph("g").Nodes[0].OpType != "Other" {
		t.Errorf("the clone was written as %+v", got)
	}
}

func TestWalk(t *testing.T) {
	inner := &onnx.Graph{Nodes: []*onnx.Node{onnx.NewNode("C", nil, nil)}}
	middle := &onnx.Graph{Nodes: []*onnx.Node{onnx.NewNode("B", nil, nil, onnx.GraphAttr("body", inner))}}
	g := &onnx.Graph{Nodes: []*onnx.Node{onnx.NewNode("A", nil, nil, onnx.GraphAttr("then_branch", middle)), onnx.NewNode("D", nil, nil)}}
	var got []string
	for n := range g.AllNodes() {
		got = append(got, n.OpType)
	}
	if !slices.Equal(got, []string{"A", "B", "C", "D"}) {
		t.Errorf("walked %v", got)
	}
	for n := range g.AllNodes() { // leaving early must not go on
		if n.OpType == "B" {
			break
		}
	}
}

func TestValueInfo(t *testing.T) {
	m := onnx.New()
	m.Graph.AddInput(onnx.NewValueInfo("x", onnx.Float16, onnx.Dim{Param: "batch"}, onnx.Dim{Value: 0}, onnx.Dim{Value: onnx.UnknownDim}))
	m.Graph.AddInput(onnx.NewValueInfo("scalar", onnx.Int64))
	m.Graph.AddInput(&onnx.ValueInfo{Name: "rankless", Type: onnx.Float})
	again, err := onnx.Parse(marshal(t, m))
	if err != nil {
		t.Fatal(err)
	}
	in := again.Graph.Inputs
	if in[0].Type != onnx.Float16 || !slices.Equal(in[0].Shape, m.Graph.Inputs[0].Shape) {
		t.Errorf("%+v", in[0])
	}
	if !in[1].HasShape || len(in[1].Shape) != 0 || in[2].HasShape {
		t.Errorf("scalar %+v, rankless %+v", in[1], in[2])
	}
	again.Graph.RemoveInput("scalar")
	in[0].Shape = in[0].Shape[:1]
	in[2].HasShape, in[2].Shape = true, []onnx.Dim{{Value: 5}}
	last, err := onnx.Parse(marshal(t, again))
	if err != nil {
		t.Fatal(err)
	}
	in = last.Graph.Inputs
	if len(in) != 2 || len(in[0].Shape) != 1 || in[0].Shape[0].String() != "batch" || in[1].Shape[0] != (onnx.Dim{Value: 5}) {
		t.Errorf("after edits: %+v %+v", in[0], in[1])
	}
}

// Models older than IR version 3 do not tell the types of attributes.
func TestAttributesWithoutAType(t *testing.T) {
	m := smallModel()
	m.Graph.Node[0].Attribute = []*onnxpb.AttributeProto{
		{Name: proto.String("i"), I: proto.Int64(3)}, {Name: proto.String("s"), S: []byte("text")}, {Name: proto.String("is"), Ints: []int64{1, 2}},
	}
	model, err := onnx.Parse(message(m))
	if err != nil {
		t.Fatal(err)
	}
	n := model.Graph.Nodes[0]
	if n.Int("i", 0) != 3 || n.Text("s", "") != "text" || !slices.Equal(n.Ints("is"), []int64{1, 2}) {
		t.Errorf("attributes %+v", n.Attributes)
	}
}
