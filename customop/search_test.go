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

// file makes an empty file and the folders above it.
func file(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each place gives way to the one before it.
func TestFindOrder(t *testing.T) {
	folder := t.TempDir()
	explicit, named := file(t, folder, "given"), file(t, folder, "named")
	first := file(t, folder, "a", fileName("x"))
	second := file(t, folder, "b", fileName("x"))
	s := search{library: "x", stem: "x", explicit: explicit, variable: "ROPE_TEST_LIBRARY",
		folders: []string{filepath.Join(folder, "none"), filepath.Join(folder, "a"), filepath.Join(folder, "b")}, advice: "get one"}
	t.Setenv("ROPE_TEST_LIBRARY", named)

	for _, step := range []struct {
		want string
		next func()
	}{
		{explicit, func() { s.explicit = "" }},
		{named, func() { t.Setenv("ROPE_TEST_LIBRARY", "") }},
		{first, func() { os.Remove(first) }},
		{second, func() { os.Remove(second) }},
	} {
		if got, err := s.find(); err != nil || got != step.want {
			t.Errorf("found %q, %v; want %q", got, err, step.want)
		}
		step.next()
	}
	_, err := s.find()
	var missing *NotFoundError
	if !errors.As(err, &missing) || !slices.Equal(missing.Looked, s.folders) {
		t.Fatalf("error %v, want a NotFoundError with the folders", err)
	}
	for _, part := range append(s.folders, "get one", "x was not found") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

// What is listed are the places up to the one that decides, and they find what find finds.
func TestLooked(t *testing.T) {
	folder := t.TempDir()
	first, named := file(t, folder, "a", fileName("x")), file(t, folder, "named")
	s := search{library: "x", stem: "x", variable: "ROPE_TEST_LIBRARY", folders: []string{folder, filepath.Join(folder, "a"), filepath.Join(folder, "b")}}
	check := func(want ...Place) {
		t.Helper()
		got := s.looked()
		if !slices.Equal(got, want) {
			t.Errorf("looked at %+v, %+v was expected", got, want)
		}
		if path, err := s.find(); err == nil && path != got[len(got)-1].Path {
			t.Errorf("%s is found, and %+v listed last", path, got[len(got)-1])
		}
	}
	nothing := []Place{{Where: "the given path"}, {Where: "ROPE_TEST_LIBRARY"}, {Where: folder}}
	check(append(nothing, Place{Where: s.folders[1], Path: first})...)
	t.Setenv("ROPE_TEST_LIBRARY", named)
	check(nothing[0], Place{Where: "ROPE_TEST_LIBRARY", Path: named})
	s.explicit = folder
	if got := s.looked(); len(got) != 1 || got[0].Path != folder || !strings.Contains(got[0].Problem, "which is a folder") {
		t.Errorf("looked at %+v", got)
	}
	s.explicit = ""
	t.Setenv("ROPE_TEST_LIBRARY", "")
	os.Remove(first)
	check(append(nothing, Place{Where: s.folders[1]}, Place{Where: s.folders[2]})...)
}

// A path that somebody gave is never replaced by another one.
func TestGivenPathMustExist(t *testing.T) {
	folder := t.TempDir()
	file(t, folder, fileName("x"))
	s := search{library: "x", stem: "x", variable: "ROPE_TEST_LIBRARY", folders: []string{folder}, advice: "get one"}

	s.explicit = filepath.Join(folder, "absent")
	if _, err := s.find(); err == nil || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "absent: ") || !strings.Contains(err.Error(), "get one") {
		t.Errorf("error %v, want one that names the path and says what to do", err)
	}
	s.explicit = folder
	if _, err := s.find(); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("error %v, want one that says it is a folder", err)
	}
	s.explicit = ""
	t.Setenv("ROPE_TEST_LIBRARY", filepath.Join(folder, "absent"))
	if _, err := s.find(); err == nil || !strings.Contains(err.Error(), "ROPE_TEST_LIBRARY names") {
		t.Errorf("error %v, want one that names the variable", err)
	}
}

func TestNewestVersion(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not tested: versioned names are written as on Linux here")
	}
	folder := t.TempDir()
	for _, name := range []string{"libx.so.1.9.0", "libx.so.1.31.1", "libx.so.1.30.12", "libx.so.old", "libxy.so.2"} {
		file(t, folder, name)
	}
	if err := os.Mkdir(filepath.Join(folder, "libx.so.9"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := filepath.Base(newestIn(folder, "x")); got != "libx.so.1.31.1" {
		t.Errorf("newest is %s, want libx.so.1.31.1", got)
	}
	plain := file(t, folder, "libx.so")
	if got := newestIn(folder, "x"); got != plain {
		t.Errorf("newest is %s, want the plain name", got)
	}
}

// What stands in the working directory, where somebody's model may be, is no
// library of ours, whatever a loader's path makes of it.
func TestLibrariesNotInWorkingDirectory(t *testing.T) {
	for _, variable := range []string{LibraryVariable, RuntimeVariable} {
		t.Setenv(variable, "")
	}
	folder := resolved(t.TempDir())
	for _, variable := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		t.Setenv(variable, ":.:inside:")
	}
	t.Chdir(folder)
	for _, stem := range []string{"rope_ops", "rope_ops_cuda", "onnxruntime"} {
		file(t, folder, fileName(stem))
		file(t, folder, "inside", fileName(stem))
	}
	library, _ := FindLibrary(Options{})
	cuda, cudaErr := FindCUDALibrary(Options{})
	onnxruntime, _ := FindRuntime("")
	for _, path := range []string{library, cuda, onnxruntime} {
		if strings.HasPrefix(resolved(path), folder) {
			t.Errorf("found %s in the working directory", path)
		}
	}
	if cudaErr != nil && strings.Contains(cudaErr.Error(), "has no kernels") {
		t.Errorf("a library in the working directory was read: %v", cudaErr)
	}
}

func TestLibraryInCache(t *testing.T) {
	t.Setenv(LibraryVariable, "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cached := file(t, cache, "rope-rewrite", fileName("rope_ops"))
	if got, err := FindLibrary(Options{}); err != nil || got != cached {
		t.Errorf("found %q, %v; want %q in the user's cache", got, err, cached)
	}
	given := file(t, t.TempDir(), "my.so")
	if got, err := FindLibrary(Options{Library: given}); err != nil || got != given {
		t.Errorf("found %q, %v; want the given %q", got, err, given)
	}
}

func TestRuntimeBesideExecutable(t *testing.T) {
	t.Setenv(RuntimeVariable, "")
	executable, err := os.Executable() // in a folder that go test has made for it
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"onnxruntime", "."} { // the second comes before the first
		library := file(t, filepath.Dir(executable), folder, fileName("onnxruntime"))
		defer os.Remove(library)
		if got, err := FindRuntime(""); err != nil || got != library {
			t.Errorf("found %q, %v; want %q", got, err, library)
		}
	}
}

// The user's Python and Node have one, in an environment that is active or on the PATH. One that is
// too old by its name is passed over, and so is what stands in the working directory.
func TestRuntimeInEnvironment(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the folders' names are those of Linux on x64")
	}
	root := t.TempDir()
	t.Setenv(RuntimeVariable, "")
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX", "NODE_PATH"} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", filepath.Join(root, "usr", "bin"))
	t.Chdir(root)
	capi := []string{"lib", "python3.12", "site-packages", "onnxruntime", "capi", "libonnxruntime.so.1.32.0"}
	napi := []string{"onnxruntime-node", "bin", "napi-v6", "linux", "x64", "libonnxruntime.so.1"}
	in := func(folder string, parts []string) string {
		return file(t, append([]string{root, folder}, parts...)...)
	}
	venv, conda, global, modules := in("venv [1]", capi), in("conda", capi), in("usr", capi), in("modules", napi)
	node := file(t, root, "usr", "lib", "node_modules", filepath.Join(napi...))
	old := file(t, root, "old", "lib", "python3.9", "site-packages", "onnxruntime", "capi", "libonnxruntime.so.1.17.3")
	file(t, root, "node_modules", filepath.Join(napi...))
	for _, program := range []string{"python3", "node"} {
		if err := os.Chmod(file(t, root, "usr", "bin", program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, variable, value, want string
		gone                        string // a file that is taken away first
	}{
		{"a virtual environment", "VIRTUAL_ENV", filepath.Join(root, "venv [1]"), venv, ""},
		{"conda", "CONDA_PREFIX", filepath.Join(root, "conda"), conda, ""},
		{"an old one", "VIRTUAL_ENV", filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(old)))))), global, ""},
		{"python3 on the PATH", "VIRTUAL_ENV", "venv", global, ""},
		{"NODE_PATH", "NODE_PATH", filepath.Join(root, "modules"), modules, global},
		{"node on the PATH", "NODE_PATH", "modules", node, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			if c.gone != "" {
				if err := os.Remove(c.gone); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := FindRuntime(""); err != nil || got != c.want {
				t.Errorf("found %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestInspectLibrary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lib")
	if err := os.WriteFile(path, []byte("\x7fELF...rope_ops version=0.3.0-rc.1 spec=12\x00..."), 0o644); err != nil {
		t.Fatal(err)
	}
	want := LibraryInfo{Path: path, Version: "0.3.0-rc.1", SpecVersion: 12}
	if got, err := InspectLibrary(path); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if _, err := InspectLibrary(file(t, t.TempDir(), "empty")); err == nil || !strings.Contains(err.Error(), "is not an op library") {
		t.Errorf("error %v, want one that says it is not an op library", err)
	}
	if _, err := InspectLibrary(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want a missing file", err)
	}
}
