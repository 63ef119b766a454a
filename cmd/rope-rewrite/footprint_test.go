package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
)

// footprints are command lines, each with the files that it may leave.
var footprints = []struct {
	args   []string
	leaves []string
}{
	{[]string{"model.onnx"}, []string{"model.onnx", "model.rope.onnx"}},
	{[]string{"inspect", "model.onnx"}, []string{"model.onnx"}},
	{[]string{"audit", "model.onnx", "--config", "config.json"}, []string{"config.json", "model.onnx"}},
	{[]string{"diff", "model.onnx", "model.onnx"}, []string{"model.onnx"}},
	{[]string{"validate", "model.onnx", "model.onnx"}, []string{"model.onnx"}},
	{[]string{"drift", "model.onnx", "--length=4", "--shifts=1"}, []string{"model.onnx"}},
	{[]string{"bench", "model.onnx", "model.onnx", "--lengths=8", "--rounds=1", "--tokens=1"}, []string{"model.onnx"}},
}

// No command writes anything beside its output, in the user's folders or in
// that for temporary files.
func TestNothingIsLeftElsewhere(t *testing.T) {
	for _, f := range testsample.Of(t, footprints, 2) {
		t.Run(f.args[0], func(t *testing.T) { leaves(t, f.leaves, append([]string{"rope-rewrite"}, f.args...)...) })
	}
}

// opened finds, in what strace writes, files that are opened to be written.
var opened = regexp.MustCompile(`open(?:at)?\((?:AT_FDCWD, )?"([^"]*)", [^)]*(?:O_WRONLY|O_RDWR|O_CREAT)`)

// read finds files that are opened, and programs that are run, without an error.
var read = regexp.MustCompile(`(?:open|openat|creat|execve)\((?:AT_FDCWD, )?"([^"]*)".* = [0-9]+`)

// opens reads testdata/opened.list: the paths that are opened besides files of the working directory.
func opens(t *testing.T) *regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile("testdata/opened.list")
	if err != nil {
		t.Fatal(err)
	}
	onnxruntime, library := testruntime.Paths(t)
	var list []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			line = strings.NewReplacer("RUNTIME", regexp.QuoteMeta(onnxruntime), "LIBRARY", regexp.QuoteMeta(library)).Replace(line)
			list = append(list, line)
		}
	}
	return regexp.MustCompile("^(?:" + strings.Join(list, "|") + ")$")
}

// No command opens a socket, or opens a file of others to write to it, not even
// for a moment.
func TestNothingIsOpenedElsewhere(t *testing.T) {
	if out, err := exec.Command("strace", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("sockets are not watched: strace does not run here: %v %s", err, out)
	}
	known := opens(t)
	for _, f := range testsample.Of(t, footprints, 3) {
		t.Run(f.args[0], func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "strace")
			folder := leaves(t, f.leaves, append([]string{"strace", "-f", "-qq", "-o", log, "-e", "trace=socket,open,openat,creat,execve", "rope-rewrite"}, f.args...)...)
			calls, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(calls), "libonnxruntime") {
				t.Error("ONNX Runtime was not seen to be loaded")
			}
			for call := range strings.Lines(string(calls)) {
				if name := read.FindStringSubmatch(call); name != nil && filepath.IsAbs(name[1]) && name[1] != folder && !known.MatchString(name[1]) {
					t.Errorf("%s is not in testdata/opened.list: %s", name[1], call)
				}
				if strings.Contains(call, "socket(") {
					t.Errorf("a socket: %s", call)
				}
				if name := opened.FindStringSubmatch(call); name != nil && filepath.IsAbs(name[1]) && !strings.HasPrefix(name[1], "/dev/") {
					t.Errorf("opened to be written: %s", call)
				}
			}
		})
	}
}

// leaves runs a command in a folder of its own with model.onnx, as a user whose
// folders are empty, and compares what it leaves. It returns the folder.
func leaves(t *testing.T, want []string, args ...string) (folder string) {
	t.Helper()
	onnxruntime, library := testruntime.Paths(t)
	work, home := t.TempDir(), t.TempDir()
	model, err := os.ReadFile("../../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "model.onnx"), model, 0o666); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(want, "config.json") {
		if err := os.WriteFile(filepath.Join(work, "config.json"), []byte(`{"rope_theta": 10000}`), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(args[0], args[1:]...)
	command.Dir = work
	command.Env = []string{"PATH=" + os.Getenv("PATH"), customop.RuntimeVariable + "=" + onnxruntime, customop.LibraryVariable + "=" + library}
	for _, variable := range []string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		command.Env = append(command.Env, variable+"="+home)
	}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := files(t, work); !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
	if got := files(t, home); len(got) > 0 {
		t.Errorf("the user's folders hold %q", got)
	}
	return work
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
