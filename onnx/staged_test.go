package onnx

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Both kinds of temporary files, whichever this system chooses.
func TestStagedFiles(t *testing.T) {
	for name, create := range map[string]func(string, bool) (*staged, error){"chosen": createStaged, "named": createNamed} {
		for _, use := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), strings.Repeat("n", 255)) // the longest name that there is
			s, err := create(path, false)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.file.WriteString("contents"); err != nil {
				t.Fatal(err)
			}
			if use {
				if err := errors.Join(finishAll([]*staged{s}, &meter{}), placeAll([]*staged{s})); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			s.discard()
			b, err := os.ReadFile(path)
			if use != (err == nil) || use != (string(b) == "contents") {
				t.Errorf("%s, committed %v: the file is %q, %v", name, use, b, err)
			}
			entries, err := os.ReadDir(filepath.Dir(path))
			if err != nil || (len(entries) == 1) != use {
				t.Errorf("%s, committed %v: the folder holds %v, %v", name, use, entries, err)
			}
			if use && runtime.GOOS != "windows" {
				mask, err := os.Create(filepath.Join(filepath.Dir(path), "usual"))
				if err != nil {
					t.Fatal(err)
				}
				mask.Close()
				usual, err := os.Stat(mask.Name())
				if err != nil {
					t.Fatal(err)
				}
				if info, err := os.Stat(path); err != nil || info.Mode() != usual.Mode() {
					t.Errorf("%s: mode %v, other files get %v (%v)", name, info.Mode(), usual.Mode(), err)
				}
			}
		}
	}
}

// What takes long and tells nothing can be interrupted too.
func TestSaveIsInterruptedWhileItWaits(t *testing.T) {
	stop := errors.New("stop")
	progress := &meter{report: func(int64, int64) error { return stop }}
	if err := progress.during(func() error { select {} }); err != stop {
		t.Errorf("the error is %v", err)
	}
}
