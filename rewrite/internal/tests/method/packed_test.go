package method_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestPackedEncoder: texts packed into rows of ModernBERT, which sees to both sides, in one layer
// within a window, give what transformers computes in float64 for each by itself. The error may be
// twice that of the original model on each text by itself.
func TestPackedEncoder(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	f, err := npz.Open(filepath.Join(kit.Testdata, "coverage", "modernbert.documents.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ids, shape, err := f.Int64("ids")
	if err != nil {
		t.Fatal(err)
	}
	documents, _, err := f.Int64("documents")
	if err != nil {
		t.Fatal(err)
	}
	logits, _, err := f.Float32("logits")
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, len(logits))
	for i, x := range logits {
		want[i] = float64(x)
	}
	rows := decoder.Sequence{Batch: int64(shape[0]), Length: int64(shape[1]), IDs: ids, Documents: documents}
	for _, d := range documents {
		rows.Mask = append(rows.Mask, min(d, 1))
	}
	export := filepath.Join(kit.Testdata, "coverage", "modernbert__ts17", "model.onnx")

	// Each text by itself, in the original.
	original := kit.Open(t, export)
	vocabulary := len(want) / len(ids)
	own, texts := 0.0, 0
	for start := 0; start < len(ids); {
		stop := start + 1
		for stop < len(ids) && stop/shape[1] == start/shape[1] && documents[stop] == documents[start] {
			stop++
		}
		if documents[start] > 0 {
			n := int64(stop - start)
			text := decoder.Sequence{Batch: 1, Length: n, IDs: ids[start:stop], Mask: slices.Repeat([]int64{1}, int(n)), Positions: make([]int64, n)}
			own = max(own, kit.Largest(kit.Chunked(t, original, text, []int64{n}), want[start*vocabulary:stop*vocabulary]))
			texts++
		}
		start = stop
	}
	if texts != 10 || own > 1e-4 {
		t.Fatalf("%d texts by themselves in the original, off by %.2g; 10 were expected", texts, own)
	}

	rows.Positions = make([]int64, len(ids)) // the model has no such input
	g := kit.Golden{Sequence: rows}
	opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "intra-document-reset")}, Documents: rewrite.Documents{Input: rewrite.DocumentsInput}}
	for _, h := range kit.Hosts() {
		t.Run(h.Name, func(t *testing.T) {
			d := h.Open(t, export, opts)
			off := kit.Largest(kit.Real(g, kit.Chunked(t, d, rows, []int64{rows.Length})), kit.Real(g, want))
			t.Logf("off by %.2g, the original by %.2g on each text by itself", off, own)
			if !(off <= 2*own) {
				t.Errorf("off by %.2g, the original by %.2g on each text by itself", off, own)
			}
		})
	}
	if off := kit.Largest(kit.Real(g, kit.Chunked(t, original, rows, []int64{rows.Length})), kit.Real(g, want)); !(off > 1) {
		t.Errorf("the original, to which a row is one text, is off by %.2g only", off)
	}
}
