package onnx_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// modelFiles lists the models that tests run over: those of the repository's
// testdata and, if ROPE_REWRITE_TEST_MODELS names a folder, all below it.
func modelFiles(t testing.TB) []string {
	t.Helper()
	folders := []string{filepath.Join("..", "testdata")}
	if extra := os.Getenv("ROPE_REWRITE_TEST_MODELS"); extra != "" {
		folders = append(folders, extra)
	} else {
		t.Log("only the repository's own models are tested; set ROPE_REWRITE_TEST_MODELS to a folder of more")
	}
	var files []string
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "doubles" {
				return fs.SkipDir // they are refused: TestDoubledModels
			}
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".onnx") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		t.Skip("there is no model in ../testdata and ROPE_REWRITE_TEST_MODELS is not set")
	}
	return files
}

func open(t testing.TB, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func marshal(t testing.TB, m *onnx.Model) []byte {
	t.Helper()
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestModelsAreWrittenBackByteForByte(t *testing.T) {
	for _, path := range modelFiles(t) {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := open(t, path)
		if got := marshal(t, m); !bytes.Equal(got, want) {
			t.Errorf("%s: Marshal changed the model", path)
		}
		out := filepath.Join(t.TempDir(), "out.onnx")
		if err := m.Save(out, onnx.SaveOptions{}); err != nil {
			if hasMissingData(m) {
				continue // of a graph whose weights are not at hand
			}
			t.Fatal(err)
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: Save changed the model (%v)", path, err)
		}
	}
}

func hasMissingData(m *onnx.Model) bool {
	for _, t := range m.Graph.Initializers {
		if location, _, _, ok := t.External(); ok {
			if _, err := os.Stat(filepath.Join(filepath.Dir(m.Path), location)); err != nil {
				return true
			}
		}
	}
	return false
}

// The oracle is the generated code, which knows nothing of views and sources.
func TestModelsReadAsTheGeneratedCodeDoes(t *testing.T) {
	for _, path := range modelFiles(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := new(onnxpb.ModelProto)
		if err := proto.Unmarshal(data, want); err != nil {
			t.Fatal(err)
		}
		m := open(t, path)
		if a, b := len(m.Graph.Nodes), len(want.Graph.Node); a != b {
			t.Fatalf("%s: %d nodes, want %d", path, a, b)
		}
		for i, n := range m.Graph.Nodes {
			w := want.Graph.Node[i]
			if n.OpType != w.GetOpType() || n.Name != w.GetName() || n.Domain != w.GetDomain() ||
				strings.Join(n.Inputs, ",") != strings.Join(w.Input, ",") ||
				strings.Join(n.Outputs, ",") != strings.Join(w.Output, ",") {
				t.Errorf("%s: node %d is %+v, want %v", path, i, n, w)
			}
		}
		for i, tensor := range m.Graph.Initializers {
			w := want.Graph.Initializer[i]
			if _, _, _, outside := tensor.External(); outside {
				continue
			}
			got, err := tensor.Bytes()
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if w.RawData != nil && !bytes.Equal(got, w.RawData) {
				t.Errorf("%s: %s has other contents", path, tensor.Name)
			}
		}
	}
}

// What stays of a real model after an edit is judged by the generated code.
func TestEditsOfRealModels(t *testing.T) {
	for _, path := range modelFiles(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := new(onnxpb.ModelProto)
		if err := proto.Unmarshal(data, want); err != nil {
			t.Fatal(err)
		}
		m := open(t, path)

		third := len(m.Graph.Nodes) / 3
		m.Graph.InsertNode(m.Graph.Nodes[third], onnx.NewNode("Probe", nil, []string{"probe"}))
		last := m.Graph.Nodes[len(m.Graph.Nodes)-1]
		m.Graph.RemoveNodes(func(n *onnx.Node) bool { return n == last })
		m.Graph.AddInitializer(onnx.NewTensor("extra", onnx.Float, nil, []byte{0, 0, 128, 63}))
		m.RequireOpset("example.probe", 1)

		nodes := append([]*onnxpb.NodeProto(nil), want.Graph.Node[:third]...)
		nodes = append(nodes, &onnxpb.NodeProto{OpType: proto.String("Probe"), Output: []string{"probe"}})
		want.Graph.Node = append(nodes, want.Graph.Node[third:len(want.Graph.Node)-1]...)
		want.Graph.Initializer = append(want.Graph.Initializer, &onnxpb.TensorProto{
			Name: proto.String("extra"), DataType: proto.Int32(1), RawData: []byte{0, 0, 128, 63}})
		want.OpsetImport = append(want.OpsetImport, &onnxpb.OperatorSetIdProto{
			Domain: proto.String("example.probe"), Version: proto.Int64(1)})

		got := new(onnxpb.ModelProto)
		if err := proto.Unmarshal(marshal(t, m), got); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s: the edit changed something else", path)
		}
	}
}
