package tokenizer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// The tokenizer of a folder is no link out of it; a file that is named may be one.
func TestLinkOut(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, "folder")
	path := filepath.Join(folder, "tokenizer.json")
	if err := errors.Join(os.Mkdir(folder, 0o777), os.WriteFile(filepath.Join(home, "mine"), []byte("{}"), 0o666), os.Symlink("../mine", path)); err != nil {
		t.Skip("this system does not let the test make links: ", err)
	}
	if _, err := tokenizer.Open(folder); !errors.Is(err, links.ErrOut) {
		t.Errorf("in a folder: %v", err)
	}
	if _, err := tokenizer.Open(path); err == nil || errors.Is(err, links.ErrOut) {
		t.Errorf("by its name: %v", err)
	}
}
