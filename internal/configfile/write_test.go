package configfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// What stands there is replaced, not written into; a failure leaves no part behind.
func TestWrite(t *testing.T) {
	folder := t.TempDir()
	path, other := filepath.Join(folder, "file"), filepath.Join(folder, "other")
	for i, content := range []string{"first", "second"} {
		if err := configfile.Write(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := os.Link(path, other); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, want := range map[string]string{path: "second", other: "first"} {
		if b, err := os.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s holds %q (%v), %q was expected", name, b, err, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Mkdir(filepath.Join(folder, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := configfile.Write(filepath.Join(folder, "taken"), nil, 0o644); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 3 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}
