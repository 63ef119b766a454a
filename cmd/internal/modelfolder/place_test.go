package modelfolder_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
)

// prepared is a hub's folder, rewritten in memory. readme tells the files of one run from those of another.
func prepared(t *testing.T, readme string) *modelfolder.Folder {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "hub")
	put(t, folder, "llama__dynamo18/config.json", "llama__dynamo18/model.onnx")
	for _, name := range []string{"a", "z"} { // before and after the model
		write(t, folder, name, readme)
	}
	f, err := modelfolder.Prepare(context.Background(), folder, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// beside lists the hidden files of a folder.
func beside(t *testing.T, folder string) []string {
	t.Helper()
	hidden, err := filepath.Glob(filepath.Join(folder, ".*rope-rewrite*"))
	if err != nil {
		t.Fatal(err)
	}
	return hidden
}

// Whatever a killed run left, the next one has a place to write to, and the folder that was there is not lost before
// a new one is in its place.
func TestAfterAKill(t *testing.T) {
	f := prepared(t, "new")
	const part, old = ".new.rope-rewrite-part", ".new.rope-rewrite-part-old"
	for name, c := range map[string]struct {
		there []string // folders that the kill left
		force bool     // the next run needs it
		kept  string   // what stands in the place before that
	}{
		"while writing":             {[]string{part}, false, ""},
		"while writing over":        {[]string{part, "new"}, true, "new"},
		"between the two moves":     {[]string{part, old}, true, old},
		"after the moves":           {[]string{old, "new"}, true, "new"},
		"with everything there":     {[]string{part, old, "new"}, true, "new"},
		"with the old folder alone": {[]string{old}, true, old},
		"while it had the place":    {[]string{part, ".new.rope-rewrite-lock"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			output := filepath.Join(home, "new")
			for _, at := range c.there {
				if strings.HasSuffix(at, "lock") {
					write(t, home, at, "")
					continue
				}
				write(t, home, at+"/a", at)
			}
			err := modelfolder.CheckOutput(filepath.Join(home, "input"), output, false)
			if (err != nil) != c.force || err != nil && !strings.Contains(err.Error(), "new exists; give --force") {
				t.Errorf("before the models are read: %v", err)
			}
			if c.kept != "" {
				if got := read(t, home, "new/a"); got != c.kept {
					t.Errorf("in its place is %q, want %q", got, c.kept)
				}
			}
			if err := f.Write(context.Background(), output, modelfolder.WriteOptions{Force: c.force}); err != nil {
				t.Errorf("the next run: %v", err)
			} else if got := read(t, home, "new/a"); got != "new" {
				t.Errorf("the next run wrote %q", got)
			}
			if left := beside(t, home); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// Of runs that write to one place at the same time, the others are refused, or write after one another: never are
// there files of two.
func TestTwoRuns(t *testing.T) {
	first, second := prepared(t, "first"), prepared(t, "second")
	output := filepath.Join(t.TempDir(), "new")
	refused := make(chan error, 1)
	err := first.Write(context.Background(), output, modelfolder.WriteOptions{Progress: func(what string) {
		if what == "writing z" { // in the midst of it
			refused <- second.Write(context.Background(), output, modelfolder.WriteOptions{Force: true})
		}
	}})
	if err != nil {
		t.Error(err)
	}
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "another run of rope-rewrite is writing it; wait for it, or give another name with -o") {
		t.Errorf("in the midst of another run: %v", err)
	}
	runs := map[string]*modelfolder.Folder{"first": first, "second": second}
	for range 20 {
		var wait sync.WaitGroup
		for _, f := range runs {
			wait.Go(func() {
				err := f.Write(context.Background(), output, modelfolder.WriteOptions{Force: true})
				if err != nil && !strings.Contains(err.Error(), "another run of rope-rewrite is writing it") {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		a, z := read(t, output, "a"), read(t, output, "z")
		if a != z || runs[a] == nil {
			t.Fatalf("files of two runs: %q and %q", a, z)
		}
	}
	if left := beside(t, filepath.Dir(output)); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// Each place that cannot be has one sentence, and nothing is written there.
func TestNoPlace(t *testing.T) {
	home := t.TempDir()
	input := filepath.Join(home, "all", "input")
	write(t, input, "model.onnx", "x")
	if err := os.Symlink(input, filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 250)
	for output, want := range map[string]string{
		filepath.Join(home, "all"):       "contains the input folder, and originals are never changed",
		filepath.Join(home, "link"):      "is the input folder or inside it",
		filepath.Join(home, "link/new"):  "is the input folder or inside it",
		filepath.Join(home, long):        "nothing can be written in " + home,
		filepath.Join(home, "none/new"):  "is not a folder; make it first",
		filepath.Join(input, "../../no"): "",
	} {
		err := modelfolder.CheckOutput(input, output, true)
		if said := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(said, want) || strings.Contains(said, "\n") {
			t.Errorf("%s: %v, want %q", output, err, want)
		}
	}
	write(t, home, "elsewhere/here/file", "x")
	t.Chdir(filepath.Join(home, "elsewhere", "here"))
	for _, output := range []string{".", ".."} {
		if err := modelfolder.CheckOutput(input, output, true); err == nil || !strings.Contains(err.Error(), "contains the current folder") {
			t.Errorf("%s: %v", output, err)
		}
	}
	if left := beside(t, home); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestReadOnlyParent(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes to read-only folders too")
	}
	home := t.TempDir()
	write(t, home, "input/model.onnx", "x")
	write(t, home, "parent/file", "x")
	parent := filepath.Join(home, "parent")
	if err := os.Chmod(parent, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Error(err)
		}
	})
	err := modelfolder.CheckOutput(filepath.Join(home, "input"), filepath.Join(parent, "new"), false)
	if want := "parent: permission denied; give another name with -o"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// A link to a folder is read and written as that folder.
func TestLinkToAFolder(t *testing.T) {
	folder, home := hub(t), t.TempDir()
	for name, to := range map[string]string{"in": folder, "out": filepath.Join(home, "real")} {
		if err := os.Symlink(to, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(home, "real"), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := modelfolder.Prepare(context.Background(), filepath.Join(home, "in"), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, force := range []bool{false, true} {
		if err := f.Write(context.Background(), filepath.Join(home, "out"), modelfolder.WriteOptions{Force: force}); err != nil {
			t.Errorf("force %v: %v", force, err)
		}
	}
	if info, err := os.Lstat(filepath.Join(home, "out")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
	if got := methodOf(t, filepath.Join(home, "real/onnx/model.onnx")); got != "" {
		t.Errorf("its model has %s", got)
	}
}
