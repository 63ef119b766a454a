package customop

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// An ONNX Runtime that is too old is named with its version, its folder and the command that brings a newer one.
func TestOldRuntimeIsNamed(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("not tested: the folders' names are those of Linux on x64")
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	module := []string{"lib", "python3.12", "site-packages", "onnxruntime"}
	for _, c := range []struct {
		name         string
		library      []string // below the root
		package_     string   // what tells the version, beside the library
		text         string
		record       string // of pip
		problem, run string
	}{
		{"pip", append(module, "capi", "libonnxruntime.so.1.20.1"), "../__init__.py", "x = 1\n__version__ = \"1.20.1\"\n", "onnxruntime-1.20.1.dist-info",
			"onnxruntime 1.20.1 is older than 1.29", "run pip install --upgrade onnxruntime in that environment (Python 3.11 or newer)"},
		{"another package of pip", append(module, "capi", "libonnxruntime.so.1.22.0"), "../__init__.py", "__version__ = \"1.22.0\"\n", "onnxruntime_gpu-1.22.0.dist-info",
			"onnxruntime-gpu 1.22.0 is older", "run pip install --upgrade onnxruntime-gpu in"},
		{"a wheel without the library", append(module, "capi", "onnxruntime_pybind11_state.so"), "../__init__.py", "__version__ = \"1.16.3\"\n", "onnxruntime-1.16.3.dist-info",
			"onnxruntime 1.16.3 is older", "run pip install --upgrade onnxruntime in"},
		{"npm", []string{"modules", "onnxruntime-node", "bin", "napi-v3", "linux", "x64", "libonnxruntime.so.1"}, "../../../../package.json", `{"name": "onnxruntime-node", "version": "1.20.1"}`, "",
			"onnxruntime-node 1.20.1 is older", "run npm install -g onnxruntime-node@latest, or"},
		{"a library without a package", []string{"lib", "libonnxruntime.so.1.28.2"}, "", "", "",
			"ONNX Runtime 1.28.2 is older", "replace it, or run pip install onnxruntime"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			t.Setenv(RuntimeVariable, "")
			t.Setenv("CONDA_PREFIX", "")
			t.Setenv("PATH", filepath.Join(root, "none"))
			t.Setenv("VIRTUAL_ENV", root)
			t.Setenv("NODE_PATH", filepath.Join(root, "modules"))
			t.Setenv("LD_LIBRARY_PATH", filepath.Join(root, "lib"))
			folder := filepath.Dir(file(t, append([]string{root}, c.library...)...))
			if c.package_ != "" {
				write(filepath.Join(folder, c.package_), c.text)
			}
			if c.record != "" {
				for _, record := range []string{c.record, strings.Replace(c.record, "onnxruntime", "onnxruntime_genai", 1)} {
					file(t, folder, "..", "..", record, "METADATA")
				}
			}
			path, err := FindRuntime("")
			var missing *NotFoundError
			if !errors.As(err, &missing) {
				t.Fatalf("found %q, %v; nothing was expected", path, err)
			}
			for _, part := range []string{"ONNX Runtime was not found: " + folder + ": " + c.problem, c.run, "set " + RuntimeVariable} {
				if !strings.Contains(missing.Brief(), part) {
					t.Errorf("error %q lacks %q", missing.Brief(), part)
				}
			}
			if strings.Count(err.Error(), folder) != 2 {
				t.Errorf("error %q has the folder once as a problem and once where it looked", err)
			}
			named := slices.ContainsFunc(RuntimePlaces(""), func(p Place) bool {
				return p.Where == folder && p.Path == "" && strings.HasPrefix(p.Problem, c.problem)
			})
			if !named {
				t.Errorf("%s is not among the places with its problem: %+v", folder, RuntimePlaces(""))
			}
		})
	}
}

// The tests run under the ONNX Runtime that doctor calls tested.
func TestTestedRuntimeIsPinned(t *testing.T) {
	pins, err := os.ReadFile(filepath.Join("..", "scripts", "pins.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(pins), "\nPIN_ONNXRUNTIME_VERSION="+TestedRuntime+".") {
		t.Errorf("scripts/pins.sh does not pin an ONNX Runtime %s", TestedRuntime)
	}
}

// A newer one is not refused, whatever its name says.
func TestNewRuntimeIsFound(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "onnxruntime", "capi")
	library := file(t, folder, fileName("onnxruntime"))
	for version, want := range map[string]bool{"1.28.9": false, MinRuntime + ".0": true, "1.100.0": true, "2.0.0.dev1": true, "unknown": true} {
		if err := os.WriteFile(filepath.Join(folder, "..", "__init__.py"), []byte("__version__ = \""+version+"\"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		path, unfit := search{stem: "onnxruntime", unfit: tooOld}.in(folder)
		if (path == library) != want || (unfit == nil) != want {
			t.Errorf("%s: %q, %v", version, path, unfit)
		}
	}
}
