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

// A record of older words is the same as one of newer words, and a difference is seen.
func TestCompare(t *testing.T) {
	w, err := readWords("words.tsv")
	if err != nil {
		t.Fatal(err)
	}
	before := "== m.onnx \nexit code 3\n{\n \"record\": {\n  \"sites\": []\n },\n \"sites\": [\n  {\n   \"proof\": null,\n   \"status\": \"kept\"\n  }\n ]\n}\nabc  model.onnx\n"
	after := "== m.onnx \nexit code 3\n{\n \"layers\": [\n  {\n   \"kind\": \"not measured\",\n   \"status\": \"unchanged\",\n   \"verification\": null\n  }\n ],\n \"record\": {\n  \"sites\": []\n },\n \"report_version\": 1\n}\nabc  model.onnx\n"
	if d := compare(before+before, after+after, w); len(d) > 0 {
		t.Errorf("%q", d)
	}
	if d := compare(before+before, after+strings.Replace(after, "abc", "abd", 1), w); len(d) != 1 {
		t.Errorf("another file is not seen: %q", d)
	}
}
