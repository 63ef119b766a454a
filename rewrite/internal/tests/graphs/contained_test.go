package graphs_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// parsed reads a model without the onnx package.
func parsed(t *testing.T, path string) *onnxpb.ModelProto {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// everythingOutside returns the path of a model all of whose constants, the
// smallest too, are in external data, as ONNX Runtime's quantizer leaves them.
func everythingOutside(t *testing.T, path string) string {
	t.Helper()
	m := parsed(t, path)
	var content []byte
	entry := func(key, value string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)}
	}
	for _, w := range m.Graph.Initializer {
		if len(w.RawData) == 0 {
			continue
		}
		w.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
		w.ExternalData = []*onnxpb.StringStringEntryProto{
			entry("location", "model.data"), entry("offset", strconv.Itoa(len(content))), entry("length", strconv.Itoa(len(w.RawData))),
		}
		content, w.RawData = append(content, w.RawData...), nil
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, b := range map[string][]byte{"model.onnx": data, "model.data": content} {
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "model.onnx")
}

func TestConstantsInExternalData(t *testing.T) {
	testruntime.Require(t)
	for _, name := range []string{"llama__optimum", "llama__dynamo18"} {
		m := kit.OpenModel(t, everythingOutside(t, filepath.Join("../../../../testdata/models", name, "model.onnx")))
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range report.Sites {
			if s.Status != rewrite.Rewritten {
				t.Errorf("%s: layer %d is unchanged: %s", name, s.Layer, s.Reason)
			}
		}
	}
}

// The size is looked at before the data is.
func TestContainRefusesLargeConstants(t *testing.T) {
	w := &onnxpb.TensorProto{
		Name: proto.String("table"), DataType: proto.Int32(int32(onnx.Float)), Dims: []int64{eval.MaxPiece},
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("missing")}},
	}
	data, err := proto.Marshal(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{w}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := eval.Contain(m); err == nil || !strings.Contains(err.Error(), "2048 MB") {
		t.Errorf("a table of 2 GB: %v", err)
	}
}
