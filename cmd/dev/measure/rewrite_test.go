package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A linked file of weights is not written anew; a file of the same name and size is.
func TestWritten(t *testing.T) {
	original, folder := t.TempDir(), t.TempDir()
	for path, size := range map[string]int{
		filepath.Join(original, "weights"):  1000,
		filepath.Join(original, "table"):    100,
		filepath.Join(folder, "table"):      100,
		filepath.Join(folder, "model.onnx"): 10,
	} {
		if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(original, "weights"), filepath.Join(folder, "weights")); err != nil {
		t.Fatal(err)
	}
	if size, err := written(folder, original); err != nil || size != 110 {
		t.Errorf("%d bytes (%v), 110 were expected", size, err)
	}
}
