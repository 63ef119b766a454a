package lm_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestExportedFolder generates from folders as transformers' exporter saves them, with a graph for a first call
// beside the one with a cache. The text is that of another export of the same weights, as they are and patched.
func TestExportedFolder(t *testing.T) {
	library := testruntime.Require(t)
	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")
	if err != nil {
		t.Fatal(err)
	}
	text := func(folder string) []int64 {
		t.Helper()
		for _, name := range []string{"tokenizer.json", "generation_config.json"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(mustRead(t, filepath.Join("../testdata/lm", name))), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		m, err := lm.Open(folder, lm.Options{Threads: 1, OpsLibrary: library})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		ids, _ := collect(t, m, lm.Input{Text: "the lighthouse stood on the last rock before the open sea"}, lm.GenerateOptions{MaxTokens: 12})
		return ids
	}
	for name, options := range map[string]*rewrite.Options{"as exported": nil, "yarn": {Edits: []rope.Spec{yarn}}} {
		var want []int64
		for _, export := range []string{"llama__dynamo18/model.onnx", "llama__transformers/decode.onnx", "llama__transformers-step/decode.onnx",
			"llama__transformers-opset23/decode.onnx", "llama__transformers-fused/decode.onnx"} {
			folder, file := t.TempDir(), filepath.Base(export)
			if err := os.CopyFS(folder, os.DirFS(filepath.Join(models, filepath.Dir(export)))); err != nil {
				t.Fatal(err)
			}
			if options != nil {
				graph := mustRead(t, patched(t, filepath.Join(folder, file), library, *options))
				if err := os.WriteFile(filepath.Join(folder, file), []byte(graph), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			ids := text(folder)
			if want == nil {
				want = ids
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s, %s: the text is %v, want %v", name, export, ids, want)
			}
		}
	}
}
