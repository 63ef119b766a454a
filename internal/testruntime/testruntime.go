// Package testruntime gives tests ONNX Runtime and the op library as `make
// build` leaves them in build/, or says why a test cannot run.
package testruntime

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// TB is what is asked of a *testing.T, *testing.B or *rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
	Skipf(format string, args ...any)
}

// Require initialises ONNX Runtime and returns the path of the op library. A
// path in the environment must work (make test sets both, so that nothing is
// skipped there); without one, a test whose libraries are not built is skipped
// with that reason.
func Require(t TB) string {
	t.Helper()
	onnxruntime, library := Paths(t)
	if err := customop.InitRuntime(onnxruntime); err != nil {
		t.Fatal(err)
	}
	return library
}

// Paths returns where both libraries are, for tests that start other processes.
func Paths(t TB) (onnxruntime, library string) {
	t.Helper()
	return path(t, customop.RuntimeVariable, "onnxruntime", "libonnxruntime.so"),
		path(t, customop.LibraryVariable, "librope_ops.so")
}

// Examples makes a package's examples find both libraries without being told,
// or has them skipped and says so where they are not built. Call it in TestMain
// before m.Run.
func Examples() {
	for variable, built := range map[string]string{
		customop.RuntimeVariable: built("onnxruntime", "libonnxruntime.so"),
		customop.LibraryVariable: built("librope_ops.so"),
	} {
		if os.Getenv(variable) != "" {
			continue
		}
		_, err := os.Stat(built)
		if err == nil {
			err = os.Setenv(variable, built)
		}
		if err != nil {
			fmt.Printf("examples are not run: %v; run make build\n", err)
			flag.Set("test.skip", "^Example")
			return
		}
	}
}

// path returns what the variable names, else the file in the repository's build
// folder.
func path(t TB, variable string, inBuild ...string) string {
	t.Helper()
	if named := os.Getenv(variable); named != "" {
		return named
	}
	built := built(inBuild...)
	if _, err := os.Stat(built); err != nil {
		t.Skipf("not tested: %s is not set and %s does not exist; run make build", variable, built)
	}
	return built
}

func built(inBuild ...string) string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(self), "..", "..", "build"}, inBuild...)...)
}
