package customop_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// ONNX Runtime's telemetry leaves a device id and a store of events in the
// user's folders. InitRuntime turns it off, unless the application asked for it.
func TestTelemetry(t *testing.T) {
	if os.Getenv("TELEMETRY_CHILD") != "" {
		testruntime.Require(t)
		options, err := ort.NewSessionOptions() // something that it could tell about
		if err != nil {
			t.Fatal(err)
		}
		options.Destroy()
		return
	}
	testruntime.Paths(t)
	left := func(environment ...string) []string {
		home := t.TempDir()
		child := exec.Command(os.Args[0], "-test.run=^TestTelemetry$")
		for _, variable := range []string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
			child.Env = append(child.Env, variable+"="+home)
		}
		for _, variable := range []string{customop.RuntimeVariable, customop.LibraryVariable} {
			child.Env = append(child.Env, variable+"="+os.Getenv(variable))
		}
		child.Env = append(append(child.Env, "TELEMETRY_CHILD=1"), environment...)
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var files []string
		err := filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
			if path != home {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	if files := left(); len(files) > 0 {
		t.Errorf("ONNX Runtime wrote %q", files)
	}
	if files := left(customop.TelemetryVariable + "=1"); len(files) > 0 {
		t.Errorf("%s is set, and ONNX Runtime wrote %q", customop.TelemetryVariable, files)
	}
	if files := left(customop.TelemetryVariable + "=0"); len(files) == 0 {
		t.Skip("that an application can ask for telemetry is not tested: this build of ONNX Runtime has none")
	}
}
