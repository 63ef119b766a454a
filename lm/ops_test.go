package lm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// A folder build/ in the working directory, which a download may bring, is not
// that of the source tree.
func TestBuiltIsInSourceTree(t *testing.T) {
	t.Setenv(customop.LibraryVariable, "")
	t.Chdir(t.TempDir())
	const fake = "build/librope_ops_fake.so"
	if err := os.Mkdir(filepath.Dir(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fake, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := lm.Built(customop.LibraryVariable, filepath.Base(fake)); got != "" {
		t.Errorf("%s of the working directory was taken", got)
	}
	if tree := lm.Built(customop.LibraryVariable); tree != "" {
		if _, err := os.Stat(filepath.Join(tree, "..", "go.mod")); err != nil {
			t.Errorf("%s is not in the source tree: %v", tree, err)
		}
	}
	t.Setenv(customop.LibraryVariable, fake)
	if got := lm.Built(customop.LibraryVariable); got != "" {
		t.Errorf("%s was taken, although the variable names another", got)
	}
}
