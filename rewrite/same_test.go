package rewrite_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// samePatched fails unless a rewritten model computes what the original does on
// sequences of so many tokens.
func samePatched(t *testing.T, original string, m *onnx.Model, length int64) {
	t.Helper()
	patched := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	result, err := validate.Run(context.Background(), original, patched, validate.Options{Length: length, LogitsOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if !result.Same {
		t.Errorf("the patched model computes something else: %+v", result.Cases)
	}
}
