package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// The same command gives the same report and the same bytes, for every request.
func TestSameTwice(t *testing.T) {
	onnxruntime, library := testruntime.Paths(t)
	t.Setenv(customop.RuntimeVariable, onnxruntime)
	t.Setenv(customop.LibraryVariable, library)
	program := filepath.Join(t.TempDir(), "rope-rewrite")
	if out, err := exec.Command("go", "build", "-o", program, "../../../cmd/rope-rewrite").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	models := []string{"../../../testdata/models/llama__optimum/model.onnx"}
	var runs [2]strings.Builder
	for i := range runs {
		if err := run(t.Context(), program, models, &runs[i]); err != nil {
			t.Fatal(err)
		}
	}
	first, second := runs[0].String(), runs[1].String()
	if first != second {
		t.Errorf("two runs differ:\n%s\nand\n%s", first, second)
	}
	if n := strings.Count(first, "  model.onnx\n"); n != len(requests) {
		t.Errorf("%d requests wrote a model, want %d:\n%s", n, len(requests), first)
	}
}
