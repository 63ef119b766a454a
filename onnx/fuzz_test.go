package onnx_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// small are models of every part of the format.
func small() (seeds []string) {
	seeds = []string{string(message(smallModel())), string(nested(3)), string(withTensor([]int64{2, 2})), string(withFunction()), string(withExternal())}
	for seed := range 5 {
		seeds = append(seeds, string(message(rapid.Custom(drawModel).Example(seed))))
	}
	return seeds
}

// withFunction is a model that calls a function of its own.
func withFunction() []byte {
	m := smallModel()
	m.Functions = []*onnxpb.FunctionProto{{Name: proto.String("Twice"), Domain: proto.String("own"), Input: []string{"a"}, Output: []string{"b"}, Attribute: []string{"k"},
		Node: []*onnxpb.NodeProto{{OpType: proto.String("Add"), Input: []string{"a", "a"}, Output: []string{"b"}, Attribute: []*onnxpb.AttributeProto{{Name: proto.String("k"), RefAttrName: proto.String("k")}}}}}}
	m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{OpType: proto.String("Twice"), Domain: proto.String("own"), Input: []string{"x"}, Output: []string{"z"}})
	return message(m)
}

// withExternal is a model whose weight stands in another file.
func withExternal() []byte {
	m := smallModel()
	w := &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{2}, DataLocation: onnxpb.TensorProto_EXTERNAL.Enum()}
	for _, e := range [][2]string{{"location", "w.bin"}, {"offset", "0"}, {"length", "8"}} {
		w.ExternalData = append(w.ExternalData, &onnxpb.StringStringEntryProto{Key: proto.String(e[0]), Value: proto.String(e[1])})
	}
	m.Graph.Initializer = append(m.Graph.Initializer, w)
	return message(m)
}

// FuzzParse: no bytes make the package panic; what it reads it writes back byte
// for byte, and an edit leaves a readable model.
func FuzzParse(f *testing.F) {
	testfuzz.Run(f, small(), 4000, func(t testing.TB, data []byte) bool {
		m, err := onnx.Parse(data)
		if err != nil {
			oneLine(t, err)
			if !errors.Is(err, onnx.ErrFormat) {
				t.Fatalf("the error does not say that the format is wrong: %v", err)
			}
			return false
		}
		if !bytes.Equal(marshal(t, m), data) {
			t.Fatal("an unedited model was changed")
		}
		look(t, m)
		before := len(m.Graph.Nodes)
		m.Graph.InsertNode(nil, onnx.NewNode("Identity", []string{"x"}, []string{"y"}))
		if before > 0 {
			m.Graph.Nodes[0].Name += "!"
		}
		m.RequireOpset("rope.rewrite", 1)
		again, err := onnx.Parse(marshal(t, m))
		if err != nil {
			t.Fatalf("after an edit: %v", err)
		}
		if len(again.Graph.Nodes) != before+1 || again.Opset("rope.rewrite") != m.Opset("rope.rewrite") {
			t.Fatal("the edit is not in what was written")
		}
		return true
	})
}

// FuzzInline: functions of a model are put in place of their calls, or the model is refused.
func FuzzInline(f *testing.F) {
	testfuzz.Run(f, []string{string(withFunction())}, 2000, func(t testing.TB, data []byte) bool {
		m, err := onnx.Parse(data)
		if err != nil {
			return false
		}
		inlined, err := m.Inline(m.Functions)
		if err != nil {
			oneLine(t, err)
			return false
		}
		if _, err := onnx.Parse(marshal(t, m)); err != nil {
			t.Fatalf("with %d calls inlined: %v", len(inlined), err)
		}
		return len(inlined) > 0
	})
}

// FuzzFields makes wire data of any numbers, so that all fields are reached whatever lengths say: each
// two bytes are a field of a message in which the fields behind it stand, or of that around it.
func FuzzFields(f *testing.F) {
	seeds := []string{"\x07\x02\x05\x02\x01\x00\x08\x03", "\x07\x02\x01\x02\x05\x02\x05\x02\x01\x00", "\x19\x02\x07\x02\x01\x02\x01\x03\x02\x03"}
	testfuzz.Run(f, seeds, 4000, func(t testing.TB, input []byte) bool {
		data := fields(&input, 0)
		m, err := onnx.Parse(append(data, 0x3a, 0)) // and a graph
		if err != nil {
			oneLine(t, err)
			return false
		}
		look(t, m)
		return true
	})
}

func fields(input *[]byte, depth int) (out []byte) {
	for len(*input) >= 2 {
		number, kind := protowire.Number((*input)[0]&31), (*input)[1]
		*input = (*input)[2:]
		if number == 0 {
			return out
		}
		switch kind % 6 {
		case 0:
			out = protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), uint64(kind)/6)
		case 1:
			out = protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), 1<<(kind/6)|uint64(kind)<<40)
		case 2, 3:
			if depth > 60 {
				return out
			}
			inner := fields(input, depth+1)
			out = protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), inner)
		case 4:
			out = protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), []byte{'a' + kind/6})
		case 5:
			out = protowire.AppendFixed32(protowire.AppendTag(out, number, protowire.Fixed32Type), uint32(kind))
		}
	}
	return out
}

// look reads what a model holds.
func look(t testing.TB, m *onnx.Model) {
	t.Helper()
	for n := range m.Graph.AllNodes() {
		for _, a := range n.Attributes {
			if a.Tensor != nil {
				_, _ = a.Tensor.Float64s()
			}
		}
	}
	for _, w := range m.Graph.Initializers {
		_, _ = w.Int64s()
		_, _ = w.Strings()
	}
	for err := range m.UnreadableData() {
		oneLine(t, err)
	}
	if err := m.CheckValues(); err != nil {
		oneLine(t, err)
	}
	m.Digest()
}

func oneLine(t testing.TB, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %q", text)
	}
}
