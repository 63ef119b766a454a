package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPeers(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "peers.json")
	run := func(program, weights, rest string) string {
		return `{"program": "` + program + `", "weights": "` + weights + `", "cache": "float16", ` + rest + `}`
	}
	text := `{"cpu": "C", "cores": 2, "versions": {"llama.cpp": "v1"}, "tokens": 24, "runs": [` + strings.Join([]string{
		run("rope-rewrite", "int4", `"length": 4096, "threads": 1, "load": 1.5, "prefill": 9, "prefill_cpu": 2, "token": 9, "token_cpu": 0.01`),
		run("rope-rewrite", "int4", `"length": 4096, "threads": 1, "load": 0.5, "prefill": 9, "prefill_cpu": 4, "token": 9, "token_cpu": 0.03`),
		run("llama.cpp", "q4_0", `"length": 4096, "threads": 1, "load": 1, "prefill": 9, "prefill_cpu": 4, "token": 9, "token_cpu": 0.025`),
		run("llama.cpp", "q8_0", `"length": 4096, "threads": 1, "load": 1, "prefill": 9, "prefill_cpu": 8, "token": 9, "token_cpu": 0.01`),
		run("llama.cpp", "q4_0", `"length": 4096, "threads": 2, "load": 1, "prefill": 2, "prefill_cpu": 9, "token": 0.1, "token_cpu": 9`),
	}, ",") + `]}`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	drawing := filepath.Join(folder, "peers.svg")
	if err := printPeers(out, file, drawing); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"load was 0.5 to 1.5",
		"| rope-rewrite | int4 | float16 | **1365** | 50.0 |",
		"| llama.cpp | q8_0 | float16 | 512 | **100.0** |",
		"| rope-rewrite | int4 | float16 | not run | not run |",
		"| llama.cpp | q4_0 | float16 | **2048** | **10.0** |",
		"| int4, cache float16 | 1 | 4,096 | 1.33 (llama.cpp q4_0) | 1.25 (q4_0) |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the tables lack %s:\n%s", want, out)
		}
	}
	if svg, err := os.ReadFile(drawing); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("no drawing: %v", err)
	}
}
