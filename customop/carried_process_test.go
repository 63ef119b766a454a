//go:build unix

package customop_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// room is a folder that every user may read, with a copy of this test, the op library and ONNX Runtime.
type room struct{ folder, test, library, runtime string }

func newRoom(t *testing.T) room {
	t.Helper()
	onnxruntime, library := testruntime.Paths(t)
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	r := room{folder, filepath.Join(folder, "test"), filepath.Join(folder, "library"), filepath.Join(folder, "libonnxruntime.so")}
	for from, to := range map[string]string{os.Args[0]: r.test, library: r.library, onnxruntime: r.runtime} {
		if err := copyFile(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"home", "tmp"} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.Mkdir(path, 0o777), os.Chmod(path, 0o777|os.ModeSticky)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// sum is how folders for the library are named.
func (r room) sum(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(r.library)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:8])
}

// environment of a child: nothing but what the libraries need, and more.
func (r room) environment(more ...string) []string {
	return append(more, carried+"="+r.library, customop.RuntimeVariable+"="+r.runtime, "TMPDIR="+filepath.Join(r.folder, "tmp"), "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
}

// Processes that start at the same time find a whole library, also where a part of one is left.
func TestCarriedLibraryOfManyProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not tested: the libraries are built as on Linux here")
	}
	r := newRoom(t)
	home := filepath.Join(r.folder, "home")
	want := filepath.Join(home, ".cache", "rope-rewrite", r.sum(t), customop.LibraryFile())
	for _, left := range []string{"", "a part of it"} {
		if left != "" {
			if err := os.WriteFile(want, []byte(left), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		var wait sync.WaitGroup
		for range 6 {
			wait.Go(func() {
				child := exec.Command(r.test)
				child.Env = r.environment("HOME=" + home)
				if out, err := child.CombinedOutput(); err != nil || string(out) != "loaded from "+want {
					t.Errorf("%q, %v; want it loaded from %s", out, err, want)
				}
			})
		}
		wait.Wait()
	}
}

// nobody is a user without rights and without a home, as containers have it.
const nobody = 65534

// A program with the library inside, and nothing beside it, loads it where homes and folders for temporary files
// are missing, read-only or mounted noexec, and where other users were there first.
func TestCarriedLibraryWhereFoldersAreMissing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not tested: mounts are made as on Linux here")
	}
	if os.Geteuid() != 0 {
		t.Skip("not tested: only root can mount folders and become another user")
	}
	if out, err := exec.Command("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/var/tmp").CombinedOutput(); err != nil {
		t.Skipf("not tested: folders cannot be mounted here: %v: %s", err, out)
	}
	const (
		readOnly = "mount -t tmpfs -o ro none %s;"
		noexec   = "mount -t tmpfs -o noexec,mode=1777 none %s;"
	)
	for _, c := range []struct {
		name   string
		mounts func(home, tmp string) string
		there  func(r room, folder string) error // what is in the folder's place already
		home   string
		user   int
		want   string // the folder that it is loaded from begins with this, below the room if it has no slash
	}{
		{name: "no home", want: "tmp"},
		{name: "a home that is read-only", mounts: func(home, _ string) string { return fmt.Sprintf(readOnly, home) }, home: "home", want: "tmp"},
		{name: "a home that is noexec", mounts: func(home, _ string) string { return fmt.Sprintf(noexec, home) }, home: "home", want: "tmp"},
		{name: "temporary files that are noexec", mounts: func(_, tmp string) string { return fmt.Sprintf(noexec, tmp) }, home: "home", want: "home"},
		{name: "no home, and temporary files that are noexec", mounts: func(_, tmp string) string { return fmt.Sprintf(noexec, tmp) }, want: "/var/tmp"},
		{name: "nobody", home: "/nonexistent", user: nobody, want: "tmp"},
		{name: "nobody, and temporary files that are noexec", mounts: func(_, tmp string) string { return fmt.Sprintf(noexec, tmp) }, home: "/nonexistent", user: nobody, want: "/var/tmp"},
		{name: "a folder of another user", user: nobody, want: "/var/tmp", there: func(r room, folder string) error {
			return errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, customop.LibraryFile()), []byte("harm"), 0o755),
				os.Chown(folder, 12345, 12345))
		}},
		{name: "a link of another user", user: nobody, want: "/var/tmp", there: func(r room, folder string) error {
			return errors.Join(os.Symlink(t.TempDir(), folder), os.Lchown(folder, 12345, 12345))
		}},
		{name: "a file of another user in the user's folder", user: nobody, want: "tmp", there: func(r room, folder string) error {
			file := filepath.Join(folder, customop.LibraryFile())
			return errors.Join(os.Mkdir(folder, 0o700), copyFile(r.library, file), os.Chown(folder, nobody, nobody), os.Chown(file, 12345, 12345))
		}},
		{name: "no folder at all", mounts: func(_, tmp string) string { return fmt.Sprintf(noexec+readOnly, tmp, "/var/tmp") }, user: nobody},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoom(t)
			home, tmp := filepath.Join(r.folder, "home"), filepath.Join(r.folder, "tmp")
			if c.there != nil {
				if err := c.there(r, filepath.Join(tmp, fmt.Sprintf("rope-rewrite-%d-%s", c.user, r.sum(t)))); err != nil {
					t.Fatal(err)
				}
			}
			mounts := "mount -t tmpfs -o mode=1777 none /var/tmp;" // nothing is to stay on this machine
			if c.mounts != nil {
				mounts += c.mounts(home, tmp)
			}
			child := exec.Command("unshare", "--mount", "sh", "-ec", mounts+
				fmt.Sprintf("exec setpriv --reuid %d --regid %[1]d --clear-groups %s", c.user, r.test))
			child.Env = r.environment()
			switch {
			case c.home == "home":
				child.Env = append(child.Env, "HOME="+home)
			case c.home != "":
				child.Env = append(child.Env, "HOME="+c.home)
			}
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if c.want == "" {
				for _, part := range []string{"the op library librope_ops.so was not found: ", tmp, "mounted noexec", "/var/tmp", "read-only file system", "set XDG_CACHE_HOME to ", "set " + customop.LibraryVariable} {
					if !strings.Contains(string(out), part) {
						t.Errorf("error %q lacks %q", out, part)
					}
				}
				return
			}
			want := c.want
			if !filepath.IsAbs(want) {
				want = filepath.Join(r.folder, want)
			}
			if !strings.HasPrefix(string(out), "loaded from "+want) {
				t.Errorf("%s; want it loaded from %s", out, want)
			}
			if path, found := strings.CutPrefix(string(out), "loaded from "+tmp); found {
				for _, at := range []string{filepath.Dir(tmp + path), tmp + path} {
					info, err := os.Stat(at)
					if err != nil {
						t.Fatal(err)
					}
					if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != c.user || info.IsDir() && info.Mode().Perm() != 0o700 {
						t.Errorf("%s has owner %d and %v", at, owner, info.Mode())
					}
				}
			}
		})
	}
}
