package coverage

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestRounding: what differs by rounding is told from what computes something else,
// though both be off by little.
func TestRounding(t *testing.T) {
	testruntime.Require(t)
	folder := filepath.Join("..", "..", "..", "..", "testdata", "coverage", "smollm3__ts17-cache")
	original := filepath.Join(folder, "model.onnx")
	truth, err := readTruth(filepath.Join(folder, "reference.npz"))
	if err != nil {
		t.Fatal(err)
	}
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	const noise = 2e-5 // what ONNX Runtime is off by in float32
	for scaling, want := range map[string]bool{"none": true, "linear:factor=1.0000002": false} {
		spec, err := rope.ParseSpec(rope.ScalingAxis, scaling)
		if err != nil {
			t.Fatal(err)
		}
		m, err := onnx.Open(original)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if _, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}}, Edits: []rope.Spec{spec}}); err != nil {
			t.Fatal(err)
		}
		patched, remove, err := save(m)
		if err != nil {
			t.Fatal(err)
		}
		defer remove()
		s := batches(truth[1].sequence)[0]
		got, err := measured{sequence: s, calls: []int64{11, s.Length - 11}, want: truth[1].logits}.rounding(context.Background(), eng, original, patched, noise)
		if err != nil || (got != "") != want {
			t.Errorf("%s: %q, %v", scaling, got, err)
		}
		t.Logf("%s: %q", scaling, got)
	}
}
