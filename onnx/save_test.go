package onnx_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// heavyModel is a model of 64 MiB, so that a save takes several steps.
func heavyModel() []byte {
	m := smallModel()
	m.Graph.Initializer = []*onnxpb.TensorProto{{
		Name: proto.String("w"), DataType: proto.Int32(2), Dims: []int64{64 << 20}, RawData: make([]byte, 64<<20)}}
	return message(m)
}

// names lists a folder.
func names(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

func TestNothingIsOverwrittenUnasked(t *testing.T) {
	dir := t.TempDir()
	m := open(t, write(t, filepath.Join(dir, "m.onnx"), message(smallModel())))
	out := write(t, filepath.Join(dir, "out.onnx"), []byte("old"))
	if err := m.Save(out, onnx.SaveOptions{}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "choose another name") {
		t.Errorf("over a file: %v", err)
	}
	if b, _ := os.ReadFile(out); string(b) != "old" {
		t.Errorf("the old file became %q", b)
	}
	if err := m.Save(out, onnx.SaveOptions{Force: true}); err != nil {
		t.Errorf("forced: %v", err)
	}
	if b, _ := os.ReadFile(out); !bytes.Equal(b, message(smallModel())) {
		t.Errorf("forced, the file is %q", b)
	}
	if err := m.Save(dir, onnx.SaveOptions{Force: true}); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("over a folder: %v", err)
	}
	broken := link(t, "nowhere", filepath.Join(dir, "broken"))
	if err := m.Save(broken, onnx.SaveOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a broken link: %v", err)
	}
}

func TestOriginalsAreNeverTouched(t *testing.T) {
	dir := t.TempDir()
	original := message(smallModel())
	path := write(t, filepath.Join(dir, "m.onnx"), original)
	m := open(t, path)
	m.Graph.Name = "edited"
	hard := filepath.Join(dir, "hard.onnx")
	if err := os.Link(path, hard); err != nil {
		t.Skip("this file system has no hard links: ", err)
	}
	for _, same := range []string{path, link(t, "m.onnx", filepath.Join(dir, "soft.onnx")), hard, dir + "/./m.onnx"} {
		if err := m.Save(same, onnx.SaveOptions{Force: true}); !errors.Is(err, onnx.ErrRefused) {
			t.Errorf("over %s: %v", same, err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, original) {
		t.Errorf("the original changed (%v)", err)
	}
}

func TestSourceThatChangedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "m.onnx"), message(smallModel()))
	m := open(t, path)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{8, 9}); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := m.Save(filepath.Join(dir, "out.onnx"), onnx.SaveOptions{}); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("got %v", err)
	}
	// So it is where it changes while it is written, in place, and keeps its length.
	heavy := write(t, filepath.Join(dir, "heavy.onnx"), heavyModel())
	changes := open(t, heavy)
	err = changes.Save(filepath.Join(dir, "out.onnx"), onnx.SaveOptions{Progress: func(int64, int64) error {
		f, err := os.OpenFile(heavy, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("changed"), 32<<20)
		return errors.Join(err, f.Close())
	}})
	if err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("changed while it was written: %v", err)
	}
	if got := names(t, dir); got != "heavy.onnx m.onnx" {
		t.Errorf("the folder holds %s", got)
	}
	// A new file under the old name does no harm.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, []byte("other"))
	if err := m.Save(filepath.Join(dir, "out.onnx"), onnx.SaveOptions{}); err != nil {
		t.Error(err)
	}
}

func TestFailedSavesLeaveEverythingAsItWas(t *testing.T) {
	heavy := heavyModel()
	stop := errors.New("stop")
	for name, fail := range map[string]func(out string) func(int64, int64) error{
		"interrupted": func(string) func(int64, int64) error {
			return func(written, total int64) error {
				if written > total/2 {
					return stop
				}
				return nil
			}
		},
		"a folder takes the name": func(out string) func(int64, int64) error {
			return func(int64, int64) error {
				os.Remove(out)
				return os.MkdirAll(filepath.Join(out, "full"), 0o777)
			}
		},
	} {
		dir := t.TempDir()
		m := open(t, write(t, filepath.Join(dir, "m.onnx"), heavy))
		out := write(t, filepath.Join(dir, "out.onnx"), []byte("old"))
		err := m.Save(out, onnx.SaveOptions{Force: true, Progress: fail(out)})
		if err == nil || (name == "interrupted" && !errors.Is(err, stop)) {
			t.Errorf("%s: error %v", name, err)
		}
		if b, _ := os.ReadFile(out); name == "interrupted" && string(b) != "old" {
			t.Errorf("%s: the old file has %d bytes", name, len(b))
		}
		if got := names(t, dir); got != "m.onnx out.onnx" {
			t.Errorf("%s: the folder holds %s", name, got)
		}
	}
}

// A file that appears while the save runs is not overwritten either.
func TestFileThatAppearsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	m := open(t, write(t, filepath.Join(dir, "m.onnx"), message(smallModel())))
	out := filepath.Join(dir, "out.onnx")
	err := m.Save(out, onnx.SaveOptions{Progress: func(int64, int64) error { return os.WriteFile(out, []byte("new"), 0o666) }})
	if b, _ := os.ReadFile(out); !errors.Is(err, fs.ErrExist) || string(b) != "new" {
		t.Errorf("error %v, the file is %q", err, b)
	}
	if got := names(t, dir); got != "m.onnx out.onnx" {
		t.Errorf("the folder holds %s", got)
	}
}

// The test runs itself in a process that kills itself in the middle of a save.
func TestKilledSaveLeavesTheOldFile(t *testing.T) {
	if out := os.Getenv("ONNX_TEST_KILLED_SAVE"); out != "" {
		m := open(t, filepath.Join(filepath.Dir(out), "m.onnx"))
		t.Fatal(m.Save(out, onnx.SaveOptions{Force: true, Progress: func(written, total int64) error {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			if err := self.Kill(); err != nil {
				return err
			}
			select {} // until the signal arrives
		}}))
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.onnx"), heavyModel())
	out := write(t, filepath.Join(dir, "out.onnx"), []byte("old"))
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledSaveLeavesTheOldFile$")
	cmd.Env = append(os.Environ(), "ONNX_TEST_KILLED_SAVE="+out)
	output, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the process was not killed: %v\n%s", err, output)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "old" {
		t.Errorf("the old file has %d bytes (%v)", len(b), err)
	}
	if got := strings.Fields(names(t, dir)); len(got) != 2 {
		// Only file systems that have nameless files leave nothing behind.
		t.Logf("the folder holds %s", got)
	}
}

func TestProgress(t *testing.T) {
	data := heavyModel()
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	var last, calls int64
	err = m.Save(filepath.Join(t.TempDir(), "out.onnx"), onnx.SaveOptions{Progress: func(written, total int64) error {
		if written < last || total != int64(len(data)) {
			t.Errorf("written %d after %d, total %d of %d", written, last, total, len(data))
		}
		last = written
		calls++
		return nil
	}})
	if err != nil || last != int64(len(data)) || calls < 4 {
		t.Errorf("error %v, %d of %d bytes reported in %d calls", err, last, len(data), calls)
	}
}

// Two gigabytes are only made of one slice that is used often.
func TestModelsOverTheFormatsLimit(t *testing.T) {
	m := onnx.New()
	raw := make([]byte, 256<<20)
	for range 8 {
		m.Graph.AddInitializer(onnx.NewTensor("w", onnx.Uint8, []int64{256 << 20}, raw))
	}
	if _, err := m.Marshal(); !errors.Is(err, onnx.ErrTooLarge) {
		t.Errorf("Marshal: %v", err)
	}
	dir := t.TempDir()
	if err := m.Save(filepath.Join(dir, "m.onnx"), onnx.SaveOptions{}); !errors.Is(err, onnx.ErrTooLarge) {
		t.Errorf("Save: %v", err)
	}
	if got := names(t, dir); got != "" {
		t.Errorf("the folder holds %s", got)
	}
}

// The data of this model is larger than the format's limit; the file is sparse.
func TestLargeExternalData(t *testing.T) {
	testsample.All(t, "it copies 3 GB")
	const size = 3 << 30
	dir := t.TempDir()
	data := write(t, filepath.Join(dir, "w.bin"), nil)
	if err := os.Truncate(data, size); err != nil {
		t.Skip("this file system has no room for a sparse file: ", err)
	}
	m := open(t, write(t, filepath.Join(dir, "m.onnx"), outside("location", "w.bin", "offset", "3221225464")))
	m.Graph.Name = "edited"
	out := filepath.Join(dir, "elsewhere", "out.onnx")
	if err := os.Mkdir(filepath.Dir(out), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if b, err := open(t, out).Graph.Initializers[0].Bytes(); err != nil || len(b) != 8 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
