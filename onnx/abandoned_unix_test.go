//go:build unix

package onnx

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A save that is killed leaves temporary files, links to the weights among them. The next save removes them, and none
// of a save that goes on.
func TestKilledSaveIsClearedUp(t *testing.T) {
	const child = "ONNX_TEST_KILLED_STAGES"
	stage := func(home, name string) []*staged {
		weights, err := os.Open(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		linked, err := linkStaged(weights, filepath.Join(home, "new", "weights"), false)
		if err != nil {
			t.Fatal(err)
		}
		named, err := createNamed(filepath.Join(home, "new", "model"), false)
		if err != nil {
			t.Fatal(err)
		}
		unnamed, err := createStaged(filepath.Join(home, "new", "other"), false)
		if err == nil {
			err = unnamed.finish(&meter{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return []*staged{linked, named, unnamed}
	}
	if home := os.Getenv(child); home != "" {
		stage(home, "weights")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal arrives
	}
	home := t.TempDir()
	target := filepath.Join(home, "new", "model")
	if err := errors.Join(os.Mkdir(filepath.Dir(target), 0o777), os.WriteFile(filepath.Join(home, "weights"), nil, 0o666), os.WriteFile(filepath.Join(home, "other weights"), nil, 0o666),
		os.WriteFile(filepath.Join(home, "new", ".rope-rewrite-mine.tmp"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		entries, err := os.ReadDir(filepath.Dir(target))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledSaveIsClearedUp$")
	cmd.Env = append(os.Environ(), child+"="+home)
	if output, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the process was not killed: %v\n%s", err, output)
	}
	if n := count(); n != 4 {
		t.Fatalf("%d files were left, expected 3 and one of somebody else's", n)
	}
	living := stage(home, "other weights") // as long as a file is in use, all links to it are
	m := New()
	m.RequireOpset("", 18)
	if err := m.Save(target, SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 5 {
		t.Errorf("%d files are there, expected the model, 3 of the save that goes on, and one of somebody else's", n)
	}
	for _, s := range living {
		s.discard()
	}
	if n := count(); n != 2 {
		t.Errorf("%d files are there in the end", n)
	}
}
