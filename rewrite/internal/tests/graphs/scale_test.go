package graphs_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/largemodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// A model of more layers than any real one of its width, without its weights,
// is proven, all layers by one proof.
func TestManyLayersWithoutWeights(t *testing.T) {
	testsample.All(t, "it has 90 layers of a large model")
	t.Parallel()
	library := testruntime.Require(t)
	size := largemodel.Llama{Layers: 90, Heads: 8, KVHeads: 2, HeadSize: 32, Intermediate: 896, Vocabulary: 128256, Theta: 500000}
	path, _, err := size.Write(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	proofs := 0
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Evaluation: rewrite.Evaluation{Library: library}, Source: rewrite.Source{WithoutWeights: true}, Progress: func(what string) {
		if strings.HasPrefix(what, "verifying attention") {
			proofs++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sites {
		if s.Status != rewrite.Rewritten || s.Heads != 8 || s.KVHeads != 2 || s.HeadSize != 32 || s.Theta != 500000 {
			t.Fatalf("layer %d: %+v", s.Layer, s)
		}
	}
	if len(report.Sites) != 90 || proofs != 1 {
		t.Errorf("%d sites, %d proofs", len(report.Sites), proofs)
	}
}

// A model with 3.6 GB of weights in a sparse file beside it is rewritten into
// another folder without its weights being read or taking room anew.
func TestWeightsBeyondTwoGigabytes(t *testing.T) {
	testsample.Long(t, "it writes a file of 3.6 GB")
	library := testruntime.Require(t)
	size := largemodel.Llama{Layers: 2, Heads: 16, KVHeads: 4, HeadSize: 64, Intermediate: 120_000, Vocabulary: 100_000, Theta: 10000}
	folder := t.TempDir()
	path, bytes, err := size.Write(folder, true)
	if err != nil {
		t.Skip("a sparse file cannot be made here: ", err)
	}
	if bytes <= 2<<30 {
		t.Fatalf("%d bytes of weights", bytes)
	}
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Evaluation: rewrite.Evaluation{Library: library}})
	if err != nil || report.Rewritten() != 2 {
		t.Fatal(report.Rewritten(), err)
	}
	out := filepath.Join(folder, "elsewhere", "model.onnx")
	if err := os.Mkdir(filepath.Dir(out), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.Stat(filepath.Join(filepath.Dir(out), largemodel.DataFile))
	if err != nil || data.Size() != bytes {
		t.Fatalf("the weights beside the new model: %v, %v", data, err)
	}
	patched, err := onnx.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer patched.Close()
	weight := patched.Graph.Initializer("head")
	if location, offset, _, ok := weight.External(); !ok || location != largemodel.DataFile || offset+weight.ByteLen() != bytes {
		t.Errorf("the last weight is at %s %d of %d", location, offset, bytes)
	}
	graph, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer graph.Close()
	if n, err := io.Copy(io.Discard, graph); err != nil || n > 1<<20 {
		t.Errorf("the graph has %d bytes, %v", n, err)
	}
}
