package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
)

func TestMain(m *testing.M) {
	engine.ServeIfWorker()
	os.Exit(m.Run())
}

const goldens = "../../../testdata/goldens/llama.npz"

func newDemo(t *testing.T, out io.Writer) demo {
	t.Helper()
	onnxruntime, library := testruntime.Paths(t)
	dir := t.TempDir()
	command := filepath.Join(dir, "rope-rewrite")
	if said, err := exec.Command("go", "build", "-o", command, "../../../cmd/rope-rewrite").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return demo{
		out: out, command: command, folder: filepath.Join(dir, "demo"), models: "../../../testdata/models", names: []string{"llama__optimum"},
		goldens: goldens, libraries: engine.Config{Runtime: onnxruntime, Library: library},
	}
}

func TestDemo(t *testing.T) {
	var screen bytes.Buffer
	d := newDemo(t, &screen)
	if err := d.run(context.Background()); err != nil {
		t.Fatalf("%v\n%s", err, screen.String())
	}
	if got := strings.Count(screen.String(), " ok\n"); got != 11 || d.checked != 11 {
		t.Errorf("%d rows are ok of %d, want 11\n%s", got, d.checked, screen.String())
	}
	for line := range strings.Lines(strings.ReplaceAll(screen.String(), filepath.Dir(d.command), "build")) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
}

// Damaged goldens make the demo fail, whichever method they belong to.
func TestDamage(t *testing.T) {
	var screen bytes.Buffer
	d := newDemo(t, &screen)
	for _, key := range testsample.Of(t, []string{"yarn4", "string_pad"}, 1) {
		screen.Reset()
		d.checked, d.off = 0, 0
		d.goldens = damaged(t, key)
		if err := d.run(context.Background()); !errors.Is(err, errOff) {
			t.Errorf("%s damaged: %v", key, err)
		}
		if got := strings.Count(screen.String(), " OFF\n"); got != 2 {
			t.Errorf("%s damaged: %d rows are off, want 2\n%s", key, got, screen.String())
		}
		if strings.Contains(screen.String(), "within the bound") {
			t.Errorf("%s damaged, and yet:\n%s", key, screen.String())
		}
	}
	d.goldens = filepath.Join(t.TempDir(), "missing.npz")
	if err := d.run(context.Background()); err == nil || !strings.Contains(err.Error(), "missing.npz") {
		t.Errorf("goldens missing: %v", err)
	}
}

// damaged writes a copy of the goldens in which one number of one array is
// another: a low bit of its exponent is flipped.
func damaged(t *testing.T, key string) string {
	t.Helper()
	source, err := zip.OpenReader(goldens)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	path := filepath.Join(t.TempDir(), "damaged.npz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	target := zip.NewWriter(file)
	for _, entry := range source.File {
		r, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if entry.Name == key+".npy" {
			data[len(data)-2] ^= 0x80 // of the last float32
		}
		w, err := target.Create(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
