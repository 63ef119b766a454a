package buildfiles_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
)

// A folder build/ in the working directory, which a download may bring, is not
// that of the source tree.
func TestFindInSourceTree(t *testing.T) {
	t.Setenv(customop.LibraryVariable, "")
	folder := t.TempDir()
	t.Chdir(folder)
	const fake = "build/librope_ops.so"
	if err := os.Mkdir(filepath.Dir(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fake, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	path := buildfiles.Path(customop.LibraryVariable)
	if !filepath.IsAbs(path) {
		t.Skip("not tested: compiled with -trimpath, which forgets the source tree")
	}
	if strings.HasPrefix(path, folder) {
		t.Errorf("%s of the working directory was taken", path)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "..", "go.mod")); err != nil {
		t.Errorf("%s is not in the source tree: %v", path, err)
	}
	_, err := os.Stat(path)
	if got := buildfiles.Find(customop.LibraryVariable); got != path && err == nil || got != "" && err != nil {
		t.Errorf("found %q; %s: %v", got, path, err)
	}
	t.Setenv(customop.LibraryVariable, fake)
	if got := buildfiles.Find(customop.LibraryVariable); got != "" {
		t.Errorf("%s was taken, although the variable names another", got)
	}
}

func TestSetLibraries(t *testing.T) {
	t.Setenv(customop.RuntimeVariable, "mine.so")
	t.Setenv(customop.LibraryVariable, "")
	path := buildfiles.Path(customop.LibraryVariable)
	err := buildfiles.SetLibraries()
	if _, missing := os.Stat(path); missing != nil {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) || os.Getenv(customop.LibraryVariable) != "" {
			t.Errorf("nothing is built: %v", err)
		}
		return
	}
	if err != nil || os.Getenv(customop.LibraryVariable) != path || os.Getenv(customop.RuntimeVariable) != "mine.so" {
		t.Errorf("%v; %s and %s", err, os.Getenv(customop.LibraryVariable), os.Getenv(customop.RuntimeVariable))
	}
}
