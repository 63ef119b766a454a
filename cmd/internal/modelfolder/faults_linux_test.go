package modelfolder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// faulty names the folder in which a process writes a new folder while some call of the system fails.
const faulty = "MODELFOLDER_TEST_FAULTY"

// half is a folder that is ready to be written: a model, what is written for it, and what comes along. It needs no
// ONNX Runtime.
func half(t *testing.T, input string) *Folder {
	t.Helper()
	m, err := onnx.Open(filepath.Join(input, "onnx", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	m.ProducerName = "changed"
	f := &Folder{from: links.Folder{Path: input}}
	f.add(File{Path: "onnx/model.onnx", What: Rewritten}, line{model: m})
	for _, name := range []string{"config.json", "genai_config.json", recordFile} {
		f.add(File{Path: name, What: Configured}, line{data: []byte("new " + name)})
	}
	files, _, err := scan(f.from)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range files {
		if !f.has(s.path) {
			f.add(File{Path: s.path, What: Along, Size: s.info.Size()}, line{from: s})
		}
	}
	f.sort()
	return f
}

// inputOf makes the folder that half reads.
func inputOf(t *testing.T, home string) string {
	t.Helper()
	input := filepath.Join(home, "input")
	model, err := os.ReadFile("../../../testdata/models/llama__dynamo18/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	fill(t, input, map[string]string{"onnx/model.onnx": string(model), "config.json": "{}", "genai_config.json": "{}", "vocab.txt": "words",
		"tokenizer.json": strings.Repeat(" ", largeFile) + "{}"})
	return input
}

// tree has the files of a folder, nil where there is none.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	if missing(folder) {
		return nil
	}
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(folder, name)
		data, err := os.ReadFile(name)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// writeFaulty is the process that writes. Where there is an error, it ends with 3, and a link leads to
// the text: to write it might fail too.
func writeFaulty(t *testing.T, home string) {
	runtime.LockOSThread() // strace counts the calls of each thread
	f := half(t, filepath.Join(home, "input"))
	opts := WriteOptions{Force: true, Link: os.Getenv(faulty+"_LINK") != ""}
	if err := f.Write(context.Background(), filepath.Join(home, "new"), opts); err != nil {
		_ = os.Symlink(err.Error(), filepath.Join(home, "said"))
		os.Exit(3)
	}
	os.Exit(0)
}

// underStrace writes a folder in a process of its own, and returns what strace says of it.
func underStrace(t *testing.T, home string, link bool, args ...string) (output []byte, calls string, err error) {
	t.Helper()
	log := filepath.Join(home, "strace")
	cmd := exec.Command("strace", slices.Concat([]string{"-f", "-y", "-qq", "-o", log}, args, []string{os.Args[0], "-test.run=^" + t.Name() + "$"})...)
	cmd.Env = append(os.Environ(), faulty+"="+home)
	if link {
		cmd.Env = append(cmd.Env, faulty+"_LINK=1")
	}
	output, err = cmd.CombinedOutput()
	b, readErr := os.ReadFile(log)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return output, string(b), err
}

func needStrace(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("strace", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("no call of the system is made to fail: strace does not run here: %v %s", err, out)
	}
}

// failures are the calls of a system that write, and what each fails with.
var failures = map[string]string{"renameat": "EIO", "renameat2": "EIO", "fsync": "EIO", "openat": "EMFILE", "write": "ENOSPC", "pwrite64": "ENOSPC",
	"mkdirat": "ENOSPC", "unlinkat": "EIO", "copy_file_range": "ENOSPC", "linkat": "EPERM"}

// setting is what a run meets.
type setting struct {
	over  bool   // an older folder in its place
	link  bool   // large files are linked
	never string // a call that the system does not know
}

// fault is a call with a path that fails once. strace counts the calls of each thread, and those with one path are of one.
type fault struct {
	setting
	call string
	path string // in the home of the test; anyPath for a file that has no name yet
}

// beforehand are the paths that half reads too, before the run.
var beforehand = []string{"/input", "/input/onnx", "/input/onnx/model.onnx"}

const anyPath = "*"

// faults are all calls of a run, as strace saw them.
func (s setting) faults(t *testing.T) (list []fault) {
	t.Helper()
	home := t.TempDir()
	s.fill(t, home)
	calls := strings.Join(slices.Sorted(maps.Keys(failures)), ",")
	said, log, err := underStrace(t, home, s.link, slices.Concat([]string{"-e", "trace=" + calls}, s.always())...)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for line := range strings.Lines(log) {
		_, call, _ := strings.Cut(line, " ")
		call, args, _ := strings.Cut(strings.TrimSpace(call), "(")
		_, path, known := strings.Cut(args, home)
		if i := strings.IndexAny(path, `">`); known && i >= 0 && !strings.Contains(path[:i], "#") && !strings.Contains(path[:i], ".tmp") {
			path = path[:i]
		} else if path = anyPath; !known || call == "openat" {
			continue
		}
		f := fault{s, call, path}
		if failures[call] != "" && call != s.never && !slices.Contains(beforehand, path) && !strings.HasPrefix(args, "1<") && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// always are the arguments of strace for every run.
func (s setting) always() []string {
	if s.never == "" {
		return nil
	}
	return []string{"-e", "inject=" + s.never + ":error=ENOSYS"}
}

// fill makes what a run finds, and returns what is in its place.
func (s setting) fill(t *testing.T, home string) (before map[string]string) {
	t.Helper()
	inputOf(t, home)
	if s.over {
		before = map[string]string{"onnx/model.onnx": "old", "config.json": "old", "vocab.txt": "old", recordFile: `{"version": 1}`}
		fill(t, filepath.Join(home, "new"), before)
	}
	return before
}

// Each call of the system that writes a folder fails, one in each run, until a run meets no failure. The folder is the
// old one or the new one, and the next run removes whatever a failed one left.
func TestEveryFailedCallOfAFolder(t *testing.T) {
	if home := os.Getenv(faulty); home != "" {
		writeFaulty(t, home)
	}
	needStrace(t)
	var faults []fault
	for _, s := range []setting{{over: true}, {}, {over: true, never: "renameat2"}, {link: true}} {
		faults = append(faults, s.faults(t)...)
	}
	failed := map[string]int{}
	for _, c := range testsample.Of(t, faults, 24) {
		n := 1
		for c.try(t, n) {
			n++
			failed[c.call]++
		}
		if n == 1 {
			t.Error("no call was made to fail")
		}
		if t.Failed() {
			t.Fatalf("number %d: %+v", n, c)
		}
	}
	t.Logf("calls that failed: %v", failed)
}

// try lets the call of a number fail, and reports whether there was one.
func (c fault) try(t *testing.T, n int) bool {
	home := t.TempDir()
	before := c.fill(t, home)
	input, output := filepath.Join(home, "input"), filepath.Join(home, "new")
	originals := tree(t, input)
	args := append(c.always(), "-e", "trace="+strings.Trim(c.call+","+c.never, ","), "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", c.call, failures[c.call], n))
	if c.path != anyPath {
		args = append(args, "-P", home+c.path)
		if c.never != "" {
			args = append(args, "-P", output) // so that it sees that call
		}
	}
	said, log, err := underStrace(t, home, c.link, args...)
	if !slices.ContainsFunc(strings.Split(log, "\n"), func(line string) bool {
		return strings.Contains(line, " = -1 "+failures[c.call]) && strings.HasSuffix(line, "(INJECTED)")
	}) {
		if err != nil {
			t.Errorf("%v\n%s", err, said)
		}
		return false
	}
	got := tree(t, output)
	isNew := got["config.json"] == "new config.json" && len(got["onnx/model.onnx"]) > 1000 && got["vocab.txt"] == "words" &&
		got["tokenizer.json"] == originals["tokenizer.json"] && got["genai_config.json"] == "new genai_config.json" && len(got) == 6
	message, _ := os.Readlink(filepath.Join(home, "said"))
	written := strings.HasPrefix(message, output+" is written, and ")
	switch exit := (*exec.ExitError)(nil); {
	case err == nil:
		if !isNew {
			t.Errorf("the run succeeded, and the folder is not the new one: %q", slices.Sorted(maps.Keys(got)))
		}
	case !errors.As(err, &exit) || exit.ExitCode() != 3:
		t.Errorf("%v\n%s", err, said)
	case strings.Contains(message, "\n") || strings.Contains(message, ".rope-rewrite-") || !strings.Contains(message, home):
		t.Errorf("it says %q", message)
	case written && !isNew, !written && !maps.Equal(got, before):
		t.Errorf("it says %q, and the folder has %q", message, slices.Sorted(maps.Keys(got)))
	}
	if !maps.Equal(tree(t, input), originals) {
		t.Error("the originals were changed")
	}
	if err := CheckOutput(input, output, true); err != nil { // the next run
		t.Error(err)
	}
	entries, err := os.ReadDir(home)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "input" && name != "new" && name != "strace" && name != "said" {
			t.Errorf("%s is left after the next run", name)
		}
	}
	if !maps.Equal(tree(t, output), got) {
		t.Error("the next run changed the folder before it wrote")
	}
	if t.Failed() {
		t.Log(log)
	}
	return true
}

// Every file and folder is on the disk before the new folder is in its place, and then the place itself.
func TestAFolderIsOnTheDiskBeforeItIsThere(t *testing.T) {
	if home := os.Getenv(faulty); home != "" {
		writeFaulty(t, home)
	}
	needStrace(t)
	for _, over := range []bool{true, false} {
		home := t.TempDir()
		inputOf(t, home)
		if over {
			fill(t, filepath.Join(home, "new"), map[string]string{"vocab.txt": "old"})
		}
		said, log, err := underStrace(t, home, false, "-e", "trace=fsync,renameat,renameat2")
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		stage := filepath.Join(home, ".new.rope-rewrite-part")
		place := strings.Index(log, `"`+filepath.Join(home, "new")+`"`)
		if place < 0 {
			t.Fatalf("the folder was not moved:\n%s", log)
		}
		synced := func(log, path string) bool {
			for line := range strings.Lines(log) {
				if strings.Contains(line, "fsync(") && strings.Contains(line, "<"+path+">") {
					return true
				}
			}
			return false
		}
		for _, name := range []string{"", "onnx", "config.json", "genai_config.json", recordFile, "tokenizer.json", "vocab.txt"} {
			if path := filepath.Join(stage, name); !synced(log[:place], path) {
				t.Errorf("%s was not synced before the move (over an older folder: %t)\n%s", path, over, log)
			}
		}
		if !synced(log[place:], home) {
			t.Errorf("the move was not synced:\n%s", log)
		}
	}
}

// A file that comes along and was changed or replaced since the folder was read does not come into the new one.
func TestFilesThatChangeBeforeTheyCome(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"changed": func(file string) error { return os.WriteFile(file, []byte("other words"), 0o666) },
		"replaced": func(file string) error {
			return errors.Join(os.WriteFile(file+"2", []byte("words"), 0o666), os.Rename(file+"2", file))
		},
	} {
		home := t.TempDir()
		f := half(t, inputOf(t, home))
		file := filepath.Join(home, "input", "vocab.txt")
		if err := change(file); err != nil {
			t.Fatal(err)
		}
		output := filepath.Join(home, "new")
		err := f.Write(context.Background(), output, WriteOptions{})
		want := filepath.Join(output, "vocab.txt") + " could not be written, and nothing was changed: " + file + " was changed in the meantime; run it again"
		if err == nil || err.Error() != want || !missing(output) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
