package onnx_test

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// message encodes a message, panicking on what cannot happen.
func message(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

// smallModel is a graph y = Relu(x).
func smallModel() *onnxpb.ModelProto {
	return &onnxpb.ModelProto{
		IrVersion:   proto.Int64(8),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(17)}},
		Graph: &onnxpb.GraphProto{
			Name: proto.String("g"),
			Node: []*onnxpb.NodeProto{{OpType: proto.String("Relu"), Input: []string{"x"}, Output: []string{"y"}}},
		},
	}
}

func TestGraphInSeveralPieces(t *testing.T) {
	more := &onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
		Name: proto.String("later"),
		Node: []*onnxpb.NodeProto{{OpType: proto.String("Neg"), Input: []string{"y"}, Output: []string{"z"}}},
	}}
	data := append(message(smallModel()), message(more)...)
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Graph.Nodes) != 2 || m.Graph.Name != "later" {
		t.Fatalf("the pieces were not joined: %d nodes, name %q", len(m.Graph.Nodes), m.Graph.Name)
	}
	if got := marshal(t, m); !bytes.Equal(got, data) {
		t.Error("an unedited model was changed")
	}
	m.Graph.Nodes[1].OpType = "Abs"
	got := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(marshal(t, m), got); err != nil {
		t.Fatal(err)
	}
	want := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(data, want); err != nil {
		t.Fatal(err)
	}
	want.Graph.Node[1].OpType = proto.String("Abs")
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A field given twice counts with its last value, which an edit replaces
// together with the first one.
func TestFieldGivenTwice(t *testing.T) {
	data := append(message(smallModel()), message(&onnxpb.ModelProto{IrVersion: proto.Int64(9)})...)
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if m.IRVersion != 9 {
		t.Errorf("IR version %d, want the last, 9", m.IRVersion)
	}
	if !bytes.Equal(marshal(t, m), data) {
		t.Error("an unedited model was changed")
	}
	m.IRVersion = 10
	again, err := onnx.Parse(marshal(t, m))
	if err != nil || again.IRVersion != 10 {
		t.Errorf("IR version %d after the edit, want 10 (%v)", again.IRVersion, err)
	}
}

// Writers may pack lists of numbers or not.
func TestPackedDims(t *testing.T) {
	dims := protowire.AppendTag(nil, 1, protowire.BytesType)
	dims = protowire.AppendBytes(dims, []byte{2, 3})
	tensor := append(dims, message(&onnxpb.TensorProto{DataType: proto.Int32(3), Name: proto.String("w"), RawData: make([]byte, 6)})...)
	graph := protowire.AppendTag(nil, 5, protowire.BytesType)
	graph = protowire.AppendBytes(graph, tensor)
	model := protowire.AppendTag(nil, 7, protowire.BytesType)
	model = protowire.AppendBytes(model, graph)

	m, err := onnx.Parse(model)
	if err != nil {
		t.Fatal(err)
	}
	w := m.Graph.Initializer("w")
	if w == nil || w.Len() != 6 {
		t.Fatalf("packed dimensions were read as %+v", w)
	}
	w.Dims = []int64{6}
	again, err := onnx.Parse(marshal(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if d := again.Graph.Initializer("w").Dims; len(d) != 1 || d[0] != 6 {
		t.Errorf("dimensions %v after the edit, want [6]", d)
	}
}

// The encoding of what is not touched is unchanged too.
func TestUnusualEncodingSurvivesAnEdit(t *testing.T) {
	odd := func(num protowire.Number, body []byte) []byte { // its length in two bytes
		b := protowire.AppendTag(nil, num, protowire.BytesType)
		return append(append(b, byte(len(body))|0x80, 0), body...)
	}
	node := odd(1, append(odd(4, []byte("Relu")), odd(4, []byte("Neg"))...))
	other := odd(1, odd(4, []byte("Abs")))
	weight := odd(5, odd(8, []byte("w")))
	graph := slices.Concat(other, weight, node)
	m, err := onnx.Parse(odd(7, graph))
	if err != nil {
		t.Fatal(err)
	}
	m.Graph.Nodes[0].Name = "n"
	m.Graph.AddInitializer(onnx.NewTensor("v", onnx.Float, []int64{0}, nil))
	got := marshal(t, m)
	for what, want := range map[string][]byte{"node": node, "initializer": weight, "field of the changed node": odd(4, []byte("Abs"))} {
		if !bytes.Contains(got, want) {
			t.Errorf("the %s %x is not in %x", what, want, got)
		}
	}
}

func TestVersions(t *testing.T) {
	m, err := onnx.Parse(message(smallModel()))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := m.Opset(""), m.Opset("ai.onnx"); a != 17 || b != 17 {
		t.Errorf("opset of the standard domain is %d and %d by its two names, want 17", a, b)
	}
	if v := m.Opset("absent"); v != 0 {
		t.Errorf("opset of an absent domain is %d", v)
	}
	m.RequireOpset("ai.onnx", 16)
	m.RequireOpset("rope.rewrite", 1)
	m.RequireOpset("ai.onnx", 18)
	m.RequireIR(7)
	again, err := onnx.Parse(marshal(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if again.Opset("") != 18 || again.Opset("rope.rewrite") != 1 || len(again.Opsets()) != 2 || again.IRVersion != 8 {
		t.Errorf("opsets %v, IR %d", again.Opsets(), again.IRVersion)
	}
}

func TestMetadata(t *testing.T) {
	m := onnx.New()
	m.SetMetadata("a", "1")
	m.SetMetadata("b", "2")
	m.SetMetadata("a", "3")
	again, err := onnx.Parse(marshal(t, m))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for k, v := range again.Metadata() {
		got = append(got, k+"="+v)
	}
	if len(got) != 2 || got[0] != "a=3" || got[1] != "b=2" {
		t.Errorf("metadata %q", got)
	}
}
