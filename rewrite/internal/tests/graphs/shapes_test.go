package graphs_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

func nextUp(x float32) float32 { return math.Nextafter32(x, float32(math.Inf(1))) }

// withoutWeights returns the path of a model whose large weights are in external
// data that is not there, as a graph without its weights is passed around.
func withoutWeights(t *testing.T, path string) string {
	t.Helper()
	m := parsed(t, path)
	outside := onnxpb.TensorProto_EXTERNAL
	moved := 0
	for _, w := range m.Graph.Initializer {
		if len(w.RawData) < 1024 {
			continue
		}
		w.RawData = nil
		w.DataLocation = &outside
		w.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("weights.bin")}}
		moved++
	}
	if moved < 10 {
		t.Fatalf("only %d weights are large", moved)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWithoutWeights: sites are found, measured and proven when no weight file is there.
func TestWithoutWeights(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, name := range []string{"llama__optimum", "gpt_neox__dynamo18", "llama__optimum-int8"} {
		p := newPatient(t, name)
		// A weight may stand behind other nodes, as tied ones do.
		for _, s := range p.Sites {
			p.Into(p.Up(s.Query.Boundary, "MatMul", "MatMulInteger"), 1, func(w string) string {
				turn := onnx.IntsAttr("perm", 1, 0)
				return p.Node("Transpose", []string{p.Node("Transpose", []string{w}, turn)}, turn)
			})
		}
		m := kit.OpenModel(t, withoutWeights(t, p.Saved()))
		for _, w := range m.Graph.Initializers {
			if _, _, _, outside := w.External(); !outside {
				continue
			}
			if _, err := w.Bytes(); err == nil {
				t.Fatalf("%s: the weight %s is still there", name, w.Name)
			}
		}
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Source: rewrite.Source{WithoutWeights: true}})
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], `external data "weights.bin" is missing`) {
			t.Errorf("%s: the warnings are %q", name, report.Warnings)
		}
		for _, s := range report.Sites {
			if s.Status != rewrite.Rewritten {
				t.Errorf("%s: layer %d is unchanged: %s", name, s.Layer, s.Reason)
			}
		}
		if len(report.Sites) != 2 {
			t.Errorf("%s: %d sites", name, len(report.Sites))
		}
	}
}
