package kit

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Open loads a decoder with the op library.
func Open(t *testing.T, path string) *decoder.Decoder {
	t.Helper()
	d, err := decoder.Open(context.Background(), Local(t), path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Largest returns the largest difference.
func Largest(a, b []float64) float64 {
	worst := 0.0
	for i := range a {
		worst = math.Max(worst, math.Abs(a[i]-b[i]))
	}
	return worst
}

// OpNodes counts the nodes of this project's op.
func OpNodes(m *onnx.Model) (count int) {
	for n := range m.Graph.AllNodes() {
		if n.Domain == customop.Domain {
			count++
		}
	}
	return count
}

// Beside copies a model into a folder of its own, with another config.json.
func Beside(t *testing.T, path, config string) string {
	t.Helper()
	folder := t.TempDir()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"model.onnx": content}
	if config != "" {
		files["config.json"] = []byte(config)
	}
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "model.onnx")
}

// Chunked returns the logits of a sequence that is fed in chunks.
func Chunked(t *testing.T, d *decoder.Decoder, s decoder.Sequence, chunks []int64) []float64 {
	t.Helper()
	logits, err := d.Chunks(context.Background(), s, chunks...)
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

// Real picks the logits of tokens that are no padding.
func Real(g Golden, logits []float64) (picked []float64) {
	width := len(logits) / len(g.Sequence.Mask)
	for i, m := range g.Sequence.Mask {
		if m != 0 {
			picked = append(picked, logits[i*width:(i+1)*width]...)
		}
	}
	return picked
}

// NoCustomNodes fails where a model has nodes of this project's op.
func NoCustomNodes(t *testing.T, path string) {
	t.Helper()
	if n := OpNodes(OpenModel(t, path)); n > 0 {
		t.Errorf("%d nodes are the custom op", n)
	}
}

// OpenPlainly opens a model without the op library.
func OpenPlainly(t *testing.T, path string) *decoder.Decoder {
	t.Helper()
	d, err := decoder.Open(context.Background(), Unregistered{Local(t)}, path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}
