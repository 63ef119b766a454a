package method_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestShortWindows: a scaling for the whole model scales what transformers
// scales, the layer that sees all keys and not the one with a window.
func TestShortWindows(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const text = "yarn:factor=3,original_max_position_embeddings=16"
	yarn := kit.Spec(t, rope.ScalingAxis, text)
	goldens := kit.ReadMethodGoldens(t, "others")
	off := func(t *testing.T, path string, padded bool, chunks []int64) float64 {
		t.Helper()
		suffix := ""
		if padded {
			suffix = "_pad"
		}
		want, _, err := goldens.Logits.Float32("gemma3_text/yarn" + suffix)
		if err != nil {
			t.Fatal(err)
		}
		g := kit.ReadGolden(t, "llama", "plain", padded)
		return kit.SparseDistance(t, g, kit.Chunked(t, kit.Open(t, path), g.Sequence, chunks), want, goldens.Step)
	}
	const gemma3 = "gemma3_text__dynamo18"
	for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
		opts := rewrite.Options{Edits: []rope.Spec{yarn}, Target: target}
		path, report := kit.Patch(t, kit.Model(gemma3), opts)
		if said := "scaling " + text + " on layers without a window, not on the 1 with a window: their frequencies differ (" + text + "@all scales all)"; !slices.Contains(report.Edits, said) {
			t.Errorf("%s: the report has the edits %q", target, report.Edits)
		}
		for _, padded := range []bool{false, true} {
			for _, chunks := range [][]int64{{48}, kit.ThenDecode} {
				if got := off(t, path, padded, chunks); !(got <= 1e-4) {
					t.Errorf("%s, padded %v: off by %.2g from transformers", target, padded, got)
				}
			}
		}
		all, report := kit.Patch(t, kit.Model(gemma3), rewrite.Options{LayerEdits: []rewrite.LayerEdit{rewrite.AllLayers(yarn)}, Target: target})
		if said := "scaling " + text + " on all layers"; !slices.Contains(report.Edits, said) {
			t.Errorf("%s: the report has the edits %q", target, report.Edits)
		}
		if got := off(t, all, false, []int64{48}); !(got > 1e-2) {
			t.Errorf("%s: scaled on all layers it is off by %.2g only", target, got)
		}
	}

	// One for each: the window's layer may have its own beside one for the model.
	kit.Patch(t, kit.Model(gemma3), rewrite.Options{Edits: []rope.Spec{yarn},
		LayerEdits: []rewrite.LayerEdit{{Spec: kit.Spec(t, rope.ScalingAxis, "linear:factor=2"), Layers: func(i int) bool { return i == 0 }, Where: "layer 0"}}})

	m, err := onnx.Open(kit.Model(gemma3))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, err = kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{yarn}, Layers: func(i int) bool { return i == 0 }})
	var refused *rewrite.EditError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "write "+text+"@all") {
		t.Errorf("only the layer with a window: %v", err)
	} else if refused.What != "scaling" || refused.Given != text {
		t.Errorf("the error is about %q %q, want scaling %s", refused.What, refused.Given, text)
	}
}

// TestShortWindowsConfigured: where config.json scales the layers with a window
// too, a scaling for the whole model is for them as well.
func TestShortWindowsConfigured(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "model.onnx")
	data, err := os.ReadFile(kit.Model("gemma3_text__dynamo18"))
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"layer_types": ["sliding_attention", "full_attention"],
			"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8}, "sliding_attention": {"rope_type": "linear", "factor": 8}}}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	linear := kit.Spec(t, rope.ScalingAxis, "linear:factor=4")
	got, report := kit.Patch(t, path, rewrite.Options{Edits: []rope.Spec{linear}})
	if !slices.Contains(report.Edits, "scaling linear:factor=4") {
		t.Errorf("the report has the edits %q", report.Edits)
	}
	want, _ := kit.Patch(t, path, rewrite.Options{LayerEdits: []rewrite.LayerEdit{rewrite.AllLayers(linear)}})
	a, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) {
		t.Error("the model differs from one that is scaled on all layers")
	}
}
