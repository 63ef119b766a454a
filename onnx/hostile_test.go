package onnx_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

func TestWhatIsNoModel(t *testing.T) {
	good := message(smallModel())
	for name, c := range map[string]struct{ data, want string }{
		"empty":             {"", "an empty file"},
		"git-lfs":           {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a git-lfs pointer, not a model; run git lfs pull"},
		"html":              {"\n<!DOCTYPE html><html><body>404</body></html>", "a web page"},
		"zip":               {"PK\x03\x04\x14\x00\x00\x00\x08\x00", "a zip archive"},
		"gzip":              {"\x1f\x8b\x08\x00\x00\x00", "compressed with gzip"},
		"ort":               {"\x18\x00\x00\x00ORTM\x00\x00", "ONNX Runtime's .ort format"},
		"safetensors":       {"\x40\x00\x00\x00\x00\x00\x00\x00{\"w\":{}}", "a safetensors file"},
		"text":              {"ir_version: 8\ngraph { }\n", "a text file"},
		"truncated":         {string(good[:len(good)-3]), "may be truncated"},
		"length":            {"\x3a\xff\xff\xff\xff\x07", "beyond the end"},
		"varint of 11":      {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "not a valid ONNX model"},
		"varint of 65 bits": {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "not a valid ONNX model"},
		"field number 0":    {"\x02\x00", "not a valid ONNX model"},
		"no graph":          {string(message(&onnxpb.ModelProto{IrVersion: proto.Int64(8)})), "holds no graph"},
		"graph of a number": {"\x38\x01", "holds no graph"},
		"nesting":           {string(nested(60)), "nested more than 48 deep"},
		"rank":              {string(withTensor(make([]int64, 100_000))), "100000 dimensions"},
		"product":           {string(withTensor([]int64{1 << 40, 1 << 40})), "are not a valid size"},
		"empty nodes":       {string(repeated(1, 5<<18)), "more than 1048576"},
		"empty values":      {string(repeated(13, 5<<18)), "more than 1048576"},
		"negative":          {string(withTensor([]int64{-1})), "are not a valid size"},
	} {
		path := filepath.Join(t.TempDir(), "model.onnx")
		if err := os.WriteFile(path, []byte(c.data), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := onnx.Open(path)
		if !errors.Is(err, onnx.ErrFormat) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want a sentence that says %q", name, err, c.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: not one sentence: %v", name, err)
		}
	}
}

func TestFoldersAndMissingFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := onnx.Open(dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := onnx.Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := onnx.Open(os.DevNull); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
}

// Errors inside a model say where.
func TestErrorsNameTheNode(t *testing.T) {
	m := smallModel()
	m.Graph.Node[0].Name = proto.String("/layer/relu")
	bad := &onnxpb.AttributeProto{Name: proto.String("value"), T: &onnxpb.TensorProto{Dims: []int64{-5}}}
	m.Graph.Node[0].Attribute = []*onnxpb.AttributeProto{bad}
	_, err := onnx.Parse(message(m))
	if err == nil || !strings.Contains(err.Error(), `node 0 (Relu "/layer/relu"): attribute "value"`) {
		t.Errorf("got %v", err)
	}
}

// nested is a model of graphs inside graphs.
func nested(depth int) []byte {
	g := []byte{}
	for range depth {
		for _, num := range []protowire.Number{6, 5, 1} { // attribute.g, node.attribute, graph.node
			g = protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), g)
		}
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), g)
}

// repeated is a model whose graph has a field of empty contents many times.
func repeated(num protowire.Number, count int) []byte {
	field := protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), nil)
	return protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), bytes.Repeat(field, count))
}

func withTensor(dims []int64) []byte {
	m := smallModel()
	m.Graph.Initializer = []*onnxpb.TensorProto{{Name: proto.String("w"), DataType: proto.Int32(1), Dims: dims}}
	return message(m)
}
