package customop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/customop/bundled/carry"
)

// A program with a built-in library finds it in the user's cache, where it is put when it is
// first looked for, and mended when somebody changed it.
func TestCarriedLibrary(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("LocalAppData", cache)
	t.Setenv(customop.LibraryVariable, "")
	carry.Set([]byte("a library"))
	t.Cleanup(func() { carry.Set(nil) })
	if entries, _ := os.ReadDir(cache); len(entries) != 0 {
		t.Fatal("it was unpacked before it was looked for")
	}
	path, err := customop.FindLibrary(customop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(path, cache) || filepath.Base(path) != customop.LibraryFile() {
		t.Errorf("found at %s", path)
	}
	for _, spoil := range []string{"", "another"} {
		if err := os.WriteFile(path, []byte(spoil), 0o755); err != nil {
			t.Fatal(err)
		}
		if again, err := customop.FindLibrary(customop.Options{}); err != nil || again != path {
			t.Errorf("%s, %v", again, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "a library" {
			t.Errorf("%q stays where the library belongs, %v", got, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); left != nil {
		t.Errorf("left there: %q", left)
	}
	named := filepath.Join(t.TempDir(), "named.so")
	if err := os.WriteFile(named, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(customop.LibraryVariable, named)
	if got, err := customop.FindLibrary(customop.Options{}); err != nil || got != named {
		t.Errorf("a library that is named comes first, not %s, %v", got, err)
	}
}

func TestNothingCarried(t *testing.T) {
	if _, err := customop.Unpack(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no built-in op library") {
		t.Error(err)
	}
}
