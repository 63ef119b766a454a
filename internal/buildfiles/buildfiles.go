package buildfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// files are the libraries in build/, by the environment variable that may name
// another one.
var files = map[string]string{
	customop.RuntimeVariable: "onnxruntime/libonnxruntime.so",
	customop.LibraryVariable: "librope_ops.so",
}

// Path is where make build leaves the library that a variable
// (customop.RuntimeVariable, customop.LibraryVariable) may name another of,
// whether it is there or not. It is relative in a program that was compiled with
// -trimpath, which does not know its source tree.
func Path(variable string) string {
	_, self, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(self), "..", "..", "build", filepath.FromSlash(files[variable]))
}

// Find is Path where the library is there and is wanted; "" where there is none,
// or where the variable names another one.
func Find(variable string) string {
	path := Path(variable)
	if !filepath.IsAbs(path) || os.Getenv(variable) != "" {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// SetLibraries sets both variables, for this process and those that it starts,
// unless they are set already. What is not built stays unset; the error names it
// then and wraps fs.ErrNotExist.
func SetLibraries() error {
	var errs []error
	for variable := range files {
		if os.Getenv(variable) != "" {
			continue
		}
		path := Find(variable)
		if path == "" {
			errs = append(errs, fmt.Errorf("%s: %w; run make build", Path(variable), fs.ErrNotExist))
			continue
		}
		errs = append(errs, os.Setenv(variable, path))
	}
	return errors.Join(errs...)
}
