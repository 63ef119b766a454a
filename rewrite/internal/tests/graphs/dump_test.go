package graphs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A kept site is written so that ONNX Runtime runs it with the inputs beside it.
func TestDumpSites(t *testing.T) {
	if _, err := customop.FindLibrary(customop.Options{}); err != nil {
		t.Skipf("run make test, which builds the op library: %v", err)
	}
	p := newPatient(t, "llama__dynamo18")
	spoil(p)
	folder := t.TempDir()
	report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, p.Saved()), rewrite.Options{DumpSites: folder, AllowUnchanged: true})
	if err != nil || report.Rewritten() == len(report.Sites) {
		t.Fatal(report.Rewritten(), err)
	}
	for i, s := range report.Sites {
		site := filepath.Join(folder, "site-"+string(rune('0'+i)))
		reason, err := os.ReadFile(filepath.Join(site, "reason.txt"))
		if s.Status == rewrite.Rewritten {
			if err == nil {
				t.Errorf("layer %d is rewritten and written down: %s", i, reason)
			}
			continue
		}
		if err != nil || strings.TrimSpace(string(reason)) != s.Reason {
			t.Fatalf("reason %q, %v, want %q", reason, err, s.Reason)
		}
		runDump(t, site)
	}
}

// Where the path of a query no longer has the channels of a head, its rotation is refused, and nothing
// panics, with the model's own nodes as the target too.
func TestSpoiledRotation(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	p := newPatient(t, "llama__dynamo18")
	spoil(p)
	opts := rewrite.Options{Target: rewrite.PlainONNX, AllowUnchanged: true, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}}
	report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, p.Saved()), opts)
	if err != nil {
		t.Fatal(err)
	}
	if s := report.Sites[0]; s.Status != rewrite.Unchanged || !strings.Contains(s.Reason, "channels before the rotation") {
		t.Errorf("layer 0 is %s: %s", s.Status, s.Reason)
	}
}

// spoil makes the rotation of one layer something else than a rotation.
func spoil(p *patient) {
	for _, n := range p.Graph.Nodes {
		if n.OpType == "Neg" {
			n.OpType = "Abs"
			return
		}
	}
}

func runDump(t *testing.T, folder string) {
	t.Helper()
	m := kit.OpenModel(t, filepath.Join(folder, "model.onnx"))
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	em := engine.Model{Path: m.Path}
	feeds := map[string]engine.Tensor{}
	files, err := filepath.Glob(filepath.Join(folder, "test_data_set_0", "input_*.pb"))
	if err != nil || len(files) != len(m.Graph.Inputs) {
		t.Fatalf("%d files for %d inputs, %v", len(files), len(m.Graph.Inputs), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tensor onnxpb.TensorProto
		if err := proto.Unmarshal(b, &tensor); err != nil {
			t.Fatal(err)
		}
		em.Inputs = append(em.Inputs, tensor.GetName())
		feeds[tensor.GetName()] = engine.Tensor{Type: onnx.DataType(tensor.GetDataType()), Dims: tensor.Dims, Data: tensor.RawData}
	}
	for _, o := range m.Graph.Outputs {
		em.Outputs = append(em.Outputs, o.Name)
	}
	session, err := eng.Load(context.Background(), em)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.Run(context.Background(), feeds); err != nil {
		t.Fatal(err)
	}
}
