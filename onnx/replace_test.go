//go:build unix

package onnx_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Only regular files are replaced, not even by force anything else: devices,
// pipes, and links to them or to folders.
func TestOnlyRegularFilesAreReplaced(t *testing.T) {
	others := map[string]func(path string) error{
		"pipe":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link to a device": func(path string) error { return os.Symlink(os.DevNull, path) },
		"link to a folder": func(path string) error { return os.Symlink(t.TempDir(), path) },
	}
	for name, create := range others {
		for _, there := range []string{"out.onnx", "w.bin"} {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "model", "w.bin"), []byte("01234567"))
			m := open(t, write(t, filepath.Join(dir, "model", "m.onnx"), outside("location", "w.bin")))
			if err := os.Mkdir(filepath.Join(dir, "to"), 0o700); err != nil {
				t.Fatal(err)
			}
			place := filepath.Join(dir, "to", there)
			if err := create(place); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(place)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Save(filepath.Join(dir, "to", "out.onnx"), onnx.SaveOptions{Force: true}); !errors.Is(err, onnx.ErrRefused) {
				t.Errorf("a %s at %s: the error is %v", name, there, err)
			}
			if after, err := os.Lstat(place); err != nil || after.Mode() != before.Mode() {
				t.Errorf("the %s at %s became %v, %v", name, there, after, err)
			}
			if got := names(t, filepath.Join(dir, "to")); got != there {
				t.Errorf("a %s at %s: the folder holds %s", name, there, got)
			}
		}
	}
}

// So too when it appears during the save.
func TestPipeThatAppearsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	m := open(t, write(t, filepath.Join(dir, "m.onnx"), message(smallModel())))
	out := filepath.Join(dir, "out.onnx")
	appear := func(int64, int64) error { syscall.Mkfifo(out, 0o600); return nil }
	if err := m.Save(out, onnx.SaveOptions{Force: true, Progress: appear}); !errors.Is(err, onnx.ErrRefused) {
		t.Errorf("the error is %v", err)
	}
	if info, err := os.Lstat(out); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe became %v, %v", info, err)
	}
}
