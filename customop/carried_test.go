package customop_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/customop/bundled/carry"
)

// carried names the library that a child process of these tests has inside.
const carried = "ROPE_TEST_CARRIED"

// loadCarried does in a process of its own what a program with the library inside does, and prints where it was found.
func loadCarried(inside string) error {
	library, err := os.ReadFile(inside)
	if err != nil {
		return err
	}
	carry.Set(library)
	path, err := customop.FindLibrary(customop.Options{})
	if err != nil {
		return err
	}
	if err := customop.InitRuntime(""); err != nil {
		return err
	}
	options, err := ort.NewSessionOptions()
	if err != nil {
		return err
	}
	defer options.Destroy()
	if err := customop.Register(options, customop.Options{}); err != nil {
		return err
	}
	fmt.Print("loaded from ", path)
	return nil
}

// A program with a built-in library finds it in the user's cache, where it is put when it is
// first looked for, and mended when somebody changed it.
func TestCarriedLibrary(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("LocalAppData", cache)
	t.Setenv(customop.LibraryVariable, "")
	carry.Set([]byte("a library"))
	t.Cleanup(func() { carry.Set(nil) })
	if entries, _ := os.ReadDir(cache); len(entries) != 0 {
		t.Fatal("it was unpacked before it was looked for")
	}
	path, err := customop.FindLibrary(customop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(path, cache) || filepath.Base(path) != customop.LibraryFile() {
		t.Errorf("found at %s", path)
	}
	for _, spoil := range []string{"", "another"} {
		if err := os.WriteFile(path, []byte(spoil), 0o755); err != nil {
			t.Fatal(err)
		}
		if again, err := customop.FindLibrary(customop.Options{}); err != nil || again != path {
			t.Errorf("%s, %v", again, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "a library" {
			t.Errorf("%q stays where the library belongs, %v", got, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); left != nil {
		t.Errorf("left there: %q", left)
	}
	named := filepath.Join(t.TempDir(), "named.so")
	if err := os.WriteFile(named, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(customop.LibraryVariable, named)
	if got, err := customop.FindLibrary(customop.Options{}); err != nil || got != named {
		t.Errorf("a library that is named comes first, not %s, %v", got, err)
	}
}

// A folder of the cache that others can change is passed over, and so is a link in its place. What is unpacked then
// stands in a folder that is this user's alone.
func TestCarriedLibraryFromOwnFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("not tested: folders have no permissions of this kind there")
	}
	for name, spoil := range map[string]func(folder string) error{
		"others may write":  func(folder string) error { return errors.Join(os.MkdirAll(folder, 0o700), os.Chmod(folder, 0o777)) },
		"a link":            func(folder string) error { return os.Symlink(t.TempDir(), folder) },
		"a file":            func(folder string) error { return os.WriteFile(folder, nil, 0o600) },
		"others may rename": func(folder string) error { return os.Chmod(filepath.Dir(folder), 0o777) },
		"no cache whatever": func(folder string) error { return os.Unsetenv("XDG_CACHE_HOME") },
		"a cache that is no folder": func(folder string) error {
			above := filepath.Dir(folder)
			return errors.Join(os.Remove(above), os.WriteFile(above, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(customop.LibraryVariable, "")
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("HOME", "")
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			carry.Set([]byte("a library"))
			t.Cleanup(func() { carry.Set(nil) })
			usual, err := customop.FindLibrary(customop.Options{})
			if err != nil {
				t.Fatal(err)
			}
			folder := filepath.Dir(usual)
			if err := errors.Join(os.RemoveAll(folder), spoil(folder)); err != nil {
				t.Fatal(err)
			}
			path, err := customop.FindLibrary(customop.Options{})
			if err != nil || !strings.HasPrefix(path, temporary) {
				t.Fatalf("found %q, %v; want it in %s", path, err, temporary)
			}
			if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("its folder has %v, %v", info.Mode(), err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != "a library" {
				t.Errorf("%q is there, %v", got, err)
			}
		})
	}
}

// A file that is a link is replaced, and what it leads to stays: it may be anybody's.
func TestCarriedLibraryIsNoLink(t *testing.T) {
	t.Setenv(customop.LibraryVariable, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	carry.Set([]byte("a library"))
	t.Cleanup(func() { carry.Set(nil) })
	path, err := customop.FindLibrary(customop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.Rename(path, other), os.Symlink(other, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := customop.FindLibrary(customop.Options{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestNothingCarried(t *testing.T) {
	if _, err := customop.Unpack(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no built-in op library") {
		t.Error(err)
	}
}
