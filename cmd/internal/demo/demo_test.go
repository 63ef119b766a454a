package demo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/demo"
)

// The folder has what an exporter leaves, and its files are those that the tests measure.
func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "llama")
	if err := demo.Write(folder); err != nil {
		t.Fatal(err)
	}
	testdata := filepath.Join("..", "..", "..", "testdata")
	for name, from := range map[string]string{
		"model.onnx":             filepath.Join(testdata, "models", "llama__optimum"),
		"config.json":            filepath.Join(testdata, "models", "llama__optimum"),
		"tokenizer.json":         filepath.Join(testdata, "lm"),
		"generation_config.json": filepath.Join(testdata, "lm"),
		"chat_template.jinja":    "llama",
	} {
		want, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or not the bytes of %s", name, err, from)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 5 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// Nothing is replaced, and a failed run leaves nothing.
func TestWriteRefuses(t *testing.T) {
	home := t.TempDir()
	for name, make := range map[string]func(string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o777) },
		"file":   func(path string) error { return os.WriteFile(path, []byte("x"), 0o666) },
		"link":   func(path string) error { return os.Symlink("nowhere", path) },
	} {
		path := filepath.Join(home, name)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if err := demo.Write(path); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := demo.Write(filepath.Join(home, "no", "llama")); err == nil || strings.Contains(err.Error(), ".rope-rewrite") {
		t.Errorf("no folder above: %v", err)
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 3 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
