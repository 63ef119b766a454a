// Package testruntime gives tests ONNX Runtime and the op library as `make
// build` leaves them in build/, or says why a test cannot run.
package testruntime

import (
	"flag"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/buildfiles"
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
	return path(t, customop.RuntimeVariable), path(t, customop.LibraryVariable)
}

// Examples makes a package's examples find both libraries without being told,
// or has them skipped and says so where they are not built. Call it in TestMain
// before m.Run.
func Examples() {
	if err := buildfiles.SetLibraries(); err != nil {
		fmt.Printf("examples are not run: %v\n", err)
		flag.Set("test.skip", "^Example")
	}
}

// path returns what the variable names, else the file in the repository's build
// folder.
func path(t TB, variable string) string {
	t.Helper()
	if named := os.Getenv(variable); named != "" {
		return named
	}
	path := buildfiles.Path(variable)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("not tested: %s is not set and %s does not exist; run make build", variable, path)
	}
	return path
}
