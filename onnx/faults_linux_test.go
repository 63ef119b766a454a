package onnx_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// faulty holds the folders of a save that some call of the system fails: from has a model with external data, to an older one
// of the same names, or nothing.
const faulty = "ONNX_TEST_FAULTY_SAVE"

// saveFaulty is the process that saves. It prints the error and ends with 3 where there is one.
func saveFaulty(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	runtime.LockOSThread() // strace counts the calls of each thread
	m := open(t, filepath.Join(dir, "from", "m.onnx"))
	if limit := os.Getenv(faulty + "_BYTES"); limit != "" {
		var bytes uint64
		if _, err := fmt.Sscan(limit, &bytes); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: bytes}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Save(filepath.Join(dir, "to", "m.onnx"), onnx.SaveOptions{Force: true}); err != nil {
		fmt.Println("saving failed:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

// saving returns a folder as saveFaulty wants it, and what to holds before and after a save.
func saving(t *testing.T, full bool) (dir string, before, after map[string]string) {
	dir = t.TempDir()
	for _, folder := range []string{"from", "to"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	m := smallModel()
	entry := func(key, value string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)}
	}
	m.Graph.Initializer = []*onnxpb.TensorProto{{Name: proto.String("w"), DataType: proto.Int32(2), Dims: []int64{1 << 20},
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(), ExternalData: []*onnxpb.StringStringEntryProto{entry("location", "w.bin"), entry("length", "1048576")}}}
	weights := bytes.Repeat([]byte("new "), 1<<18)
	write(t, filepath.Join(dir, "from", "m.onnx"), message(m))
	write(t, filepath.Join(dir, "from", "w.bin"), weights)
	before = map[string]string{}
	if full {
		before = map[string]string{"m.onnx": "the old model", "w.bin": "the old weights"}
		for name, text := range before {
			write(t, filepath.Join(dir, "to", name), []byte(text))
		}
	}
	return dir, before, map[string]string{"m.onnx": string(message(m)), "w.bin": string(weights)}
}

// held are the files of a folder.
func held(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range strings.Fields(names(t, dir)) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	return files
}

// oldOrNew checks the folder after a save, and what it said where it failed.
func oldOrNew(t *testing.T, dir string, before, after map[string]string, output []byte, err error) {
	t.Helper()
	got := held(t, filepath.Join(dir, "to"))
	list := names(t, filepath.Join(dir, "to"))
	switch exit := (*exec.ExitError)(nil); {
	case err == nil:
		if !maps.Equal(got, after) {
			t.Errorf("the save succeeded, and the folder holds %s, which are not the new files", list)
		}
	case !errors.As(err, &exit) || exit.ExitCode() != 3:
		t.Errorf("%v\n%s", err, output)
	case !maps.Equal(got, before):
		t.Errorf("the save failed, and the folder is not as it was: %s\n%s", list, output)
	default:
		said := strings.TrimSpace(string(output))
		if strings.Count(said, "\n") > 0 || !strings.HasPrefix(said, "saving failed: saving ") {
			t.Errorf("it says %q", said)
		}
	}
}

// Each call of the system that a save makes fails, one in each run, until a save meets no failure. The folder is as it was or
// has all that is new, and nothing else stays in it.
func TestEveryFailedCall(t *testing.T) {
	if dir := os.Getenv(faulty); dir != "" {
		saveFaulty(t, dir)
	}
	if out, err := exec.Command("strace", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("no call of the system is made to fail: strace does not run here: %v %s", err, out)
	}
	for _, call := range []string{"fsync:error=EIO", "linkat:error=ENOSPC", "renameat:error=EIO", "copy_file_range:error=ENOSPC", "write,pwrite64:error=ENOSPC"} {
		for _, full := range []bool{false, true} {
			failed := 0
			for n := 1; ; n++ {
				dir, before, after := saving(t, full)
				log := filepath.Join(dir, "strace")
				cmd := exec.Command("strace", "-f", "-qq", "-o", log, "-e", "trace="+strings.Split(call, ":")[0], "-e", fmt.Sprintf("inject=%s:when=%d", call, n),
					os.Args[0], "-test.run=^TestEveryFailedCall$")
				cmd.Env = append(os.Environ(), faulty+"="+dir)
				output, err := cmd.CombinedOutput()
				calls, readErr := os.ReadFile(log)
				if readErr != nil {
					t.Fatal(readErr)
				}
				if !strings.Contains(string(calls), "(INJECTED)") {
					if err != nil {
						t.Errorf("%v\n%s", err, output)
					}
					break
				}
				failed++
				oldOrNew(t, dir, before, after, output, err)
				if t.Failed() {
					t.Fatalf("%s, number %d, over old files: %t\n%s", call, n, full, calls)
				}
			}
			t.Logf("%s: %d calls failed (over old files: %t)", call, failed, full)
		}
	}
}

// A file that cannot grow further is what a full disk is to a save.
func TestFilesThatCannotGrow(t *testing.T) {
	if dir := os.Getenv(faulty); dir != "" {
		saveFaulty(t, dir)
	}
	for _, bytes := range []int{0, 1, 100, 4096, 1<<20 - 1, 1<<20 + 1} {
		for _, full := range []bool{false, true} {
			dir, before, after := saving(t, full)
			cmd := exec.Command(os.Args[0], "-test.run=^TestFilesThatCannotGrow$")
			cmd.Env = append(os.Environ(), faulty+"="+dir, fmt.Sprintf("%s_BYTES=%d", faulty, bytes))
			output, err := cmd.CombinedOutput()
			if (err == nil) != (bytes > 1<<20) {
				t.Errorf("%d bytes: %v\n%s", bytes, err, output)
			}
			oldOrNew(t, dir, before, after, output, err)
		}
	}
}
