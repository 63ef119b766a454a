package customop

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// NotFoundError says that a shared library is in none of the places where it is
// looked for.
type NotFoundError struct {
	Library  string   // what was looked for, in words
	Looked   []string // the folders, in order
	Problems []string // of the folders that have one which cannot be used: FOLDER: what is wrong
	Advice   string   // what to do, as a clause
}

func (e *NotFoundError) Error() string {
	return e.Brief() + "; looked in " + strings.Join(e.Looked, ", ")
}

// Brief is the error without the folders.
func (e *NotFoundError) Brief() string {
	return fmt.Sprintf("%s was not found: %s", e.Library, strings.Join(append(slices.Clone(e.Problems), e.Advice), "; "))
}

// search is where one shared library may stand.
type search struct {
	library  string   // in words
	stem     string   // file name without the platform's prefix and suffix
	explicit string   // the caller's path; nothing else is tried when it is given
	variable string   // the environment variable that may hold a path
	folders  []string // tried in order
	advice   string

	// unfit is called before a folder is looked at; nil for none. An error passes over the folder: what
	// would be found there cannot be used.
	unfit func(folder string) *unfitError
}

// unfitError says why what is in a folder cannot be used.
type unfitError struct {
	problem string
	advice  string // what to do; empty for the search's own advice
}

// find returns the absolute path of the library. A path that was given but does
// not exist is an error and never a reason to look elsewhere.
func (s search) find() (string, error) {
	if s.explicit != "" {
		return s.given(s.explicit, "the given path")
	}
	if path := os.Getenv(s.variable); path != "" {
		return s.given(path, s.variable)
	}
	missing := &NotFoundError{Library: s.library, Looked: s.folders, Advice: s.advice}
	for _, folder := range s.folders {
		path, unfit := s.in(folder)
		if path != "" {
			return filepath.Abs(path)
		}
		if unfit != nil {
			missing.Problems = append(missing.Problems, folder+": "+unfit.problem)
			missing.Advice = cmp.Or(unfit.advice, missing.Advice)
		}
	}
	return "", missing
}

// Place is one place where a library is looked for.
type Place struct {
	Where   string // a folder, or what names a file: "the given path", an environment variable
	Path    string // of the library there; empty if there is none
	Problem string // of a path that is named, or of what is in the folder, and cannot be used
}

// looked lists the places in order, up to the one that decides: the first that
// holds the library, or that somebody named.
func (s search) looked() (places []Place) {
	for _, named := range []struct{ where, path string }{{"the given path", s.explicit}, {s.variable, os.Getenv(s.variable)}} {
		p := Place{Where: named.where}
		if named.path == "" {
			places = append(places, p)
			continue
		}
		path, err := s.given(named.path, named.where)
		if p.Path = path; err != nil {
			p.Path, p.Problem = named.path, err.Error()
		}
		return append(places, p)
	}
	for _, folder := range s.folders {
		path, unfit := s.in(folder)
		place := Place{Where: folder, Path: path}
		if unfit != nil {
			place.Problem = unfit.problem
		}
		if places = append(places, place); path != "" {
			break
		}
	}
	return places
}

// in returns the library in a folder, "" where there is none that can be used.
func (s search) in(folder string) (string, *unfitError) {
	if s.unfit != nil {
		if unfit := s.unfit(folder); unfit != nil {
			return "", unfit
		}
	}
	return newestIn(folder, s.stem), nil
}

func (s search) given(path, source string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %s names %s: %w; %s", s.library, source, path, withoutPath(err), s.advice)
	case info.IsDir():
		return "", fmt.Errorf("%s: %s names %s, which is a folder; give the library file itself", s.library, source, path)
	}
	return filepath.Abs(path)
}

// withoutPath is the reason alone, for a sentence in which the path stands already.
func withoutPath(err error) error {
	if reason := (*os.PathError)(nil); errors.As(err, &reason) {
		return reason.Err
	}
	return err
}

// newestIn returns the library with a stem in a folder: the plain name, else
// the highest of the versioned names (libx.so.1.2.3, libx.1.2.3.dylib).
func newestIn(folder, stem string) string {
	plain := filepath.Join(folder, fileName(stem))
	if isFile(plain) {
		return plain
	}
	var versioned []string
	switch runtime.GOOS {
	case "windows":
	case "darwin":
		versioned, _ = filepath.Glob(filepath.Join(escaped(folder), "lib"+stem+".*.dylib"))
	default:
		versioned, _ = filepath.Glob(filepath.Join(escaped(folder), fileName(stem)+".*"))
	}
	versioned = slices.DeleteFunc(versioned, func(path string) bool { return !isFile(path) || versionOf(path) == nil })
	if len(versioned) == 0 {
		return ""
	}
	return slices.MaxFunc(versioned, func(a, b string) int { return slices.Compare(versionOf(a), versionOf(b)) })
}

// LibraryFile is the name of the op library's file on this platform.
func LibraryFile() string { return fileName("rope_ops") }

// fileName is a library's name on this platform.
func fileName(stem string) string {
	switch runtime.GOOS {
	case "windows":
		return stem + ".dll"
	case "darwin":
		return "lib" + stem + ".dylib"
	}
	return "lib" + stem + ".so"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// versionOf reads the numbers of a versioned library name, nil when it has none.
func versionOf(path string) []int {
	name := strings.TrimSuffix(filepath.Base(path), ".dylib")
	_, digits, found := strings.Cut(name, ".so.")
	if !found {
		_, digits, _ = strings.Cut(name, ".")
	}
	var version []int
	for _, part := range strings.Split(digits, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		version = append(version, n)
	}
	return version
}

// executableFolders is the folder of this program, as it was started and with
// links resolved, and the named folders inside.
func executableFolders(inside ...string) []string {
	executable, err := os.Executable()
	if err != nil {
		return nil
	}
	var folders []string
	for _, path := range []string{executable, resolved(executable)} {
		folder := filepath.Dir(path)
		folders = append(folders, folder)
		for _, name := range inside {
			folders = append(folders, filepath.Join(folder, name))
		}
	}
	return folders
}

// resolved follows links; a path that cannot be followed is unchanged.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// cacheFolders is the project's folder in the user's cache.
func cacheFolders() []string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(cache, "rope-rewrite")}
}

// systemFolders is where this platform's loader and package managers keep
// libraries.
func systemFolders() []string {
	switch runtime.GOOS {
	case "windows":
		return filepath.SplitList(os.Getenv("PATH"))
	case "darwin":
		return append(filepath.SplitList(os.Getenv("DYLD_LIBRARY_PATH")), "/usr/local/lib", "/opt/homebrew/lib")
	}
	folders := append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), "/usr/local/lib", "/usr/local/lib64")
	multiarch, _ := filepath.Glob("/usr/lib/*-linux-*")
	return append(append(folders, multiarch...), "/usr/lib64", "/usr/lib")
}

// places joins folders in order, each once. Relative ones, such as the empty
// entry that "$LD_LIBRARY_PATH:/opt" leaves, would be the working directory, in
// which anybody's files may lie.
func places(groups ...[]string) []string {
	var all []string
	for _, folder := range slices.Concat(groups...) {
		if filepath.IsAbs(folder) && !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	return all
}
