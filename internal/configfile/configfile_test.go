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
