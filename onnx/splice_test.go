package onnx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

func TestUneditedModelsStayByteForByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := drawEncoding(t, drawModel(t))
		m, err := onnx.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Marshal()
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("changed (%v)", err)
		}
	})
}

// Each edit is done to the view and to the message as the generated code reads
// it; afterwards both must say the same, unknown fields included.
func TestEditsChangeNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := drawEncoding(t, drawModel(t))
		want := new(onnxpb.ModelProto)
		if err := proto.Unmarshal(data, want); err != nil {
			t.Fatal(err)
		}
		m, err := onnx.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			name := rapid.SampledFrom(editNames).Draw(t, "edit")
			edits[name](t, m, want)
		}
		b, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got := new(onnxpb.ModelProto)
		if err := proto.Unmarshal(b, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// edits are done to a model and, in the same way, to its message.
var edits = map[string]func(t *rapid.T, m *onnx.Model, p *onnxpb.ModelProto){
	"remove node": func(t *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		if n := len(m.Graph.Nodes); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			gone := m.Graph.Nodes[i]
			m.Graph.RemoveNodes(func(n *onnx.Node) bool { return n == gone })
			p.Graph.Node = slices.Delete(p.Graph.Node, i, i+1)
		}
	},
	"insert node": func(t *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		i := rapid.IntRange(0, len(m.Graph.Nodes)).Draw(t, "i")
		var before *onnx.Node
		if i < len(m.Graph.Nodes) {
			before = m.Graph.Nodes[i]
		}
		m.Graph.InsertNode(before, onnx.NewNode("New", []string{"x", ""}, []string{"y"},
			onnx.IntAttr("zero", 0), onnx.StringAttr("text", "s"), onnx.FloatsAttr("list", 1, 2)))
		kinds := []onnxpb.AttributeProto_AttributeType{2, 3, 6}
		p.Graph.Node = slices.Insert(p.Graph.Node, i, &onnxpb.NodeProto{
			OpType: proto.String("New"), Input: []string{"x", ""}, Output: []string{"y"},
			Attribute: []*onnxpb.AttributeProto{
				{Name: proto.String("zero"), Type: &kinds[0], I: proto.Int64(0)},
				{Name: proto.String("text"), Type: &kinds[1], S: []byte("s")},
				{Name: proto.String("list"), Type: &kinds[2], Floats: []float32{1, 2}},
			}})
	},
	"swap nodes": func(t *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		if n := len(m.Graph.Nodes); n > 1 {
			i := rapid.IntRange(0, n-2).Draw(t, "i")
			a, b := m.Graph.Nodes, p.Graph.Node
			a[i], a[i+1], b[i], b[i+1] = a[i+1], a[i], b[i+1], b[i]
		}
	},
	"rename in place": func(t *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		if n := len(m.Graph.Nodes); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			m.Graph.Nodes[i].Name, p.Graph.Node[i].Name = "renamed", proto.String("renamed")
			m.Graph.Nodes[i].Outputs = append(m.Graph.Nodes[i].Outputs, "more")
			p.Graph.Node[i].Output = append(p.Graph.Node[i].Output, "more")
		}
	},
	"replace by a clone": func(t *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		if n := len(m.Graph.Nodes); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			c := m.Graph.Nodes[i].Clone()
			c.OpType, p.Graph.Node[i].OpType = "Cloned", proto.String("Cloned")
			m.Graph.Nodes[i] = c
		}
	},
	"inside a sub-graph": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		for i, n := range m.Graph.Nodes {
			for k, a := range n.Attributes {
				if a.Graph == nil {
					continue
				}
				a.Graph.Name, p.Graph.Node[i].Attribute[k].G.Name = "inner", proto.String("inner")
				a.Graph.AddInput(onnx.NewValueInfo("scalar", onnx.Bool))
				g := p.Graph.Node[i].Attribute[k].G
				g.Input = append(g.Input, &onnxpb.ValueInfoProto{Name: proto.String("scalar"), Type: &onnxpb.TypeProto{
					Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
						ElemType: proto.Int32(9), Shape: &onnxpb.TensorShapeProto{}}}}})
			}
		}
	},
	"in a function": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		for i, f := range m.Functions {
			f.Outputs = []string{"only"}
			p.Functions[i].Output = []string{"only"}
		}
	},
	"attributes": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		for i, n := range m.Graph.Nodes {
			for k, a := range n.Attributes {
				a.Name, p.Graph.Node[i].Attribute[k].Name = "axes", proto.String("axes")
				if a.Type == onnx.AttrInts {
					a.Ints, p.Graph.Node[i].Attribute[k].Ints = []int64{7}, []int64{7}
				}
				if a.Type == onnx.AttrInt {
					a.Int, p.Graph.Node[i].Attribute[k].I = 0, proto.Int64(0)
				}
				if a.Type == onnx.AttrTensor {
					a.Tensor.Name, p.Graph.Node[i].Attribute[k].T.Name = "t", proto.String("t")
				}
			}
		}
	},
	"opset": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		m.RequireOpset("rope.rewrite", 1)
		for _, o := range p.OpsetImport {
			if o.GetDomain() == "rope.rewrite" {
				return
			}
		}
		p.OpsetImport = append(p.OpsetImport, &onnxpb.OperatorSetIdProto{
			Domain: proto.String("rope.rewrite"), Version: proto.Int64(1)})
	},
	"metadata": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		m.SetMetadata("a key", "a value")
		for _, e := range p.MetadataProps {
			if e.GetKey() == "a key" {
				return
			}
		}
		p.MetadataProps = append(p.MetadataProps, &onnxpb.StringStringEntryProto{
			Key: proto.String("a key"), Value: proto.String("a value")})
	},
	"ir version": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		m.RequireIR(99)
		p.IrVersion = proto.Int64(99)
	},
	"rename initializer": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		for i, w := range m.Graph.Initializers {
			w.Name, p.Graph.Initializer[i].Name = "w", proto.String("w")
		}
	},
	"remove initializer": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		first := true
		m.Graph.RemoveInitializers(func(*onnx.Tensor) bool { is := first; first = false; return is })
		if len(p.Graph.Initializer) > 0 {
			p.Graph.Initializer = p.Graph.Initializer[1:]
		}
	},
	"shape": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		for i, v := range m.Graph.Inputs {
			if v.HasShape && len(v.Shape) > 0 {
				v.Shape[0] = onnx.Dim{Param: "renamed"}
				shape := p.Graph.Input[i].Type.GetTensorType().Shape
				shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "renamed"}
			}
		}
	},
	"remove output": func(_ *rapid.T, m *onnx.Model, p *onnxpb.ModelProto) {
		if len(m.Graph.Outputs) > 0 {
			name := m.Graph.Outputs[0].Name
			m.Graph.RemoveOutput(name)
			p.Graph.Output = slices.DeleteFunc(p.Graph.Output, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == name })
		}
	},
}

var editNames = func() (names []string) {
	for name := range edits {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

// What is changed stands where it stood: a change that is taken back gives the file's
// own bytes, field for field in their order.
func TestChangedAndChangedBack(t *testing.T) {
	for _, name := range []string{"llama__optimum", "gemma3_text__dynamo18", "llama__genai-fp16"} {
		path := filepath.Join("..", "testdata", "models", name, "model.onnx")
		original, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		resize := func(from string, dim func(old onnx.Dim) onnx.Dim) []byte {
			m := open(t, from)
			for _, list := range [][]*onnx.ValueInfo{m.Graph.Inputs, m.Graph.Outputs} {
				for i, v := range list {
					if len(v.Shape) == 4 {
						v = v.Clone()
						v.Shape[2] = dim(v.Shape[2])
						list[i] = v
					}
				}
			}
			data, err := m.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
		var kept []onnx.Dim
		changed := resize(path, func(old onnx.Dim) onnx.Dim {
			kept = append(kept, old)
			return onnx.Dim{Value: 77}
		})
		if len(kept) == 0 || bytes.Equal(changed, original) {
			t.Fatalf("%s: nothing was changed", name)
		}
		back := resize(write(t, filepath.Join(t.TempDir(), "changed.onnx"), changed), func(onnx.Dim) onnx.Dim {
			old := kept[0]
			kept = kept[1:]
			return old
		})
		if !bytes.Equal(back, original) {
			t.Errorf("%s: changed back it differs from the original", name)
		}
	}
}
