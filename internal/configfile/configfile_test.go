//go:build unix

package configfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

// What is no small regular file is refused at once: a read of it would not end.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), []byte("1234"), 0o600),
		os.WriteFile(at("five"), []byte("12345"), 0o600),
		os.WriteFile(at("sparse"), nil, 0o600),
		os.Truncate(at("sparse"), 1<<40),
		syscall.Mkfifo(at("pipe"), 0o600),
		os.Symlink("file", at("link")),
		os.Symlink("pipe", at("pipe link")),
		os.Symlink("/dev/zero", at("zeros")),
		os.Mkdir(at("folder"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"file": "", "link": "",
		"five": "more than", "sparse": "more than",
		"pipe": "not a regular file", "pipe link": "not a regular file", "zeros": "not a regular file", "folder": "not a regular file",
	} {
		data, err := Read(at(name), 4)
		switch {
		case want == "" && (err != nil || string(data) != "1234"):
			t.Errorf("%s: %q, %v", name, data, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), at(name)) || data != nil):
			t.Errorf("%s: %q, %v; an error that says %q was expected", name, data, err, want)
		}
	}
	if _, err := Read(at("missing"), 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	// A file that says that it is empty, as those of /proc do, is bounded too.
	if _, err := os.Stat("/proc/self/status"); err == nil {
		if data, err := Read("/proc/self/status", 4); err == nil {
			t.Errorf("a file that is larger than its size: %q", data)
		}
	}
}

// What the user names may be a link to anywhere; what stands beside a model may not.
func TestReadBeside(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, "folder")
	for _, err := range []error{
		os.Mkdir(folder, 0o700),
		os.WriteFile(filepath.Join(home, "secret"), []byte("1234"), 0o600),
		os.WriteFile(filepath.Join(folder, "file"), []byte("5678"), 0o600),
		os.Symlink("../secret", filepath.Join(folder, "out")),
		os.Symlink("file", filepath.Join(folder, "in")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(folder, "out")
	if data, err := ReadBeside(out, 4); !errors.Is(err, links.ErrOut) || !strings.Contains(err.Error(), out+" is a link out of the folder, so it is not read") {
		t.Errorf("a link out: %q, %v", data, err)
	}
	if data, err := Read(out, 4); string(data) != "1234" {
		t.Errorf("a link that the user named: %q, %v", data, err)
	}
	if data, err := ReadBeside(filepath.Join(folder, "in"), 4); string(data) != "5678" {
		t.Errorf("a link that stays in: %q, %v", data, err)
	}
}
