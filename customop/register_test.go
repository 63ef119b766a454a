package customop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

func TestInitRuntimeTwice(t *testing.T) {
	testruntime.Require(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if err := customop.InitRuntime(""); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	other := filepath.Join(t.TempDir(), "libonnxruntime.so")
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := customop.InitRuntime(other); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("error %v, want one that says another one is loaded", err)
	}
}

func TestBuiltLibraryKnowsThisSpecification(t *testing.T) {
	got, err := customop.InspectLibrary(testruntime.Require(t))
	if err != nil {
		t.Fatal(err)
	}
	if got.SpecVersion != customop.SpecVersion || got.Version != customop.Version {
		t.Errorf("the built library is %+v, this package has version %s and specification %d: run make build", got, customop.Version, customop.SpecVersion)
	}
}

func TestRegisterSaysWhatToDo(t *testing.T) {
	testruntime.Require(t)
	options, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer options.Destroy()
	broken := filepath.Join(t.TempDir(), "librope_ops.so")
	if err := os.WriteFile(broken, []byte("not a library"), 0o755); err != nil {
		t.Fatal(err)
	}
	err = customop.Register(options, customop.Options{Library: broken})
	if err == nil || !strings.Contains(err.Error(), broken) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("error %v, want the path and what to do", err)
	}
}

// probe is set in the child processes of TestInitRuntimeSaysWhatToDo, each of
// which tries one library: a process can only load ONNX Runtime once.
const probe = "ROPE_TEST_INIT_RUNTIME"

func TestMain(m *testing.M) {
	if path, ok := os.LookupEnv(carried); ok {
		if err := loadCarried(path); err != nil {
			os.Stdout.WriteString(err.Error())
		}
		return
	}
	if path, ok := os.LookupEnv(probe); ok {
		if err := customop.InitRuntime(path); err != nil {
			os.Stdout.WriteString(err.Error())
		}
		return
	}
	os.Exit(m.Run())
}

func TestInitRuntimeSaysWhatToDo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not tested: the libraries are built as on Linux here")
	}
	folder := t.TempDir()
	text := filepath.Join(folder, "text.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	old := compile(t, filepath.Join(folder, "libonnxruntime.so.1.28.2"), `
		static const void *api(unsigned version) { return version > 28 ? 0 : ""; }
		static const char *version(void) { return "1.28.2"; }
		static const struct { const void *(*api)(unsigned); const char *(*version)(void); } base = {api, version};
		const void *OrtGetApiBase(void) { return &base; }`)
	link := filepath.Join(folder, "libonnxruntime.so")
	if err := os.Symlink(filepath.Base(old), link); err != nil {
		t.Fatal(err)
	}
	unnamed := filepath.Join(folder, "runtime.so")
	if err := os.Link(old, unnamed); err != nil {
		t.Fatal(err)
	}
	other := compile(t, filepath.Join(folder, "other.so"), `int something(void) { return 1; }`)

	for _, c := range []struct {
		path string
		want []string
	}{
		{filepath.Join(folder, "absent.so"), []string{"absent.so", "no such file"}},
		{text, []string{"could not be loaded", text}},
		{other, []string{"could not be loaded", other, "OrtGetApiBase"}},
		{link, []string{"1.29 or newer is needed", link, "is 1.28.2"}},
		{unnamed, []string{"1.29 or newer is needed", unnamed, "is older"}},
	} {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), probe+"="+c.path)
		out, err := child.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", c.path, err, out)
		}
		for _, part := range append(c.want, "set "+customop.RuntimeVariable) {
			if !strings.Contains(string(out), part) {
				t.Errorf("%s: error %q lacks %q", c.path, out, part)
			}
		}
	}
}

// compile builds a shared library from C.
func compile(t *testing.T, path, source string) string {
	t.Helper()
	c := exec.Command("cc", "-shared", "-fPIC", "-xc", "-o", path, "-")
	c.Stdin = strings.NewReader(source)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v: %s", err, out)
	}
	return path
}

// Where a session wants its numbers is said by an entry of its options, which only the CUDA ops heed.
func TestDeviceInputsEntry(t *testing.T) {
	library := testruntime.Require(t)
	for value, wrong := range map[string]bool{"0": false, "1": false, "2": true, "": true, "a value of some length": true} {
		options, err := ort.NewSessionOptions()
		if err != nil {
			t.Fatal(err)
		}
		defer options.Destroy()
		if err := options.AddSessionConfigEntry(customop.DeviceInputs, value); err != nil {
			t.Fatal(err)
		}
		err = customop.Register(options, customop.Options{Library: library})
		if wrong != (err != nil) || wrong && !strings.Contains(err.Error(), "rope.device_inputs must be 1") {
			t.Errorf("%q: %v", value, err)
		}
	}
}
