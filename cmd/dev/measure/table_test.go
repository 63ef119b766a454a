package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "bench.json")
	text := `{"cpu": "C", "target": "T", "onnxruntime": "1.2.3", "multiply_add_flops": 1e11, "bfloat16_flops": 0, "read_bytes": 2e10, "rounds": 9, "rows": [
	 {"work": "prefill", "threads": 2, "contestant": "RotaryAttention", "seconds": 0.001, "flops_per_second": 1.5e11, "cache_bytes_per_second": 1e10, "peer_over_this": 1.25, "this_over_ours": 1, "gain_of_threads": 1.9}]}`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	drawing := filepath.Join(folder, "bench.svg")
	if err := printTable(out, file, drawing); err != nil {
		t.Fatal(err)
	}
	if want := "| prefill | 2 | RotaryAttention | 1 | 150.0 | 75 % | 10.00 | 50 % | 1.25 | 1.00 | 1.90 |"; !strings.Contains(out.String(), want) {
		t.Errorf("the table lacks %s:\n%s", want, out)
	}
	if svg, err := os.ReadFile(drawing); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("no drawing: %v", err)
	}
}

func TestNothingToShow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bench.json")
	if err := os.WriteFile(file, []byte(`{"rows": []}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := printTable(&bytes.Buffer{}, file, ""); err == nil || !strings.Contains(err.Error(), "no rows") {
		t.Errorf("an empty file: %v", err)
	}
}
