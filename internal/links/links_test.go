//go:build unix

package links_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

const secret, own = "the user's own text", "the model's text"

// world is a home with a secret and a stranger's folder in it.
func world(t *testing.T) (home, folder string) {
	t.Helper()
	home = t.TempDir()
	folder = filepath.Join(home, "stranger")
	write(t, filepath.Join(home, "secret"), secret)
	write(t, filepath.Join(home, "private", "secret"), secret)
	write(t, filepath.Join(folder, "file"), own)
	write(t, filepath.Join(folder, "sub", "file"), own)
	return home, folder
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.Symlink(to, path)); err != nil {
		t.Fatal(err)
	}
}

func read(f links.Folder, name string) (string, error) {
	file, err := f.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	return string(data), err
}

// A link is followed in the folder alone, however it is written and over however many steps.
func TestLinks(t *testing.T) {
	home, folder := world(t)
	for name, to := range map[string]string{
		"in": "sub/file", "in by a full path": filepath.Join(folder, "file"), "sub/up": "../file", "chain": "sub/up",
		"out": "../secret", "out by a full path": filepath.Join(home, "secret"), "sub/out": "../../secret", "chain out": "sub/out",
		"there and back": "../stranger/file", "out by a folder": "folder out/secret", "folder out": "../private", "folder": "sub", "by a folder": "folder/file",
		"dangling": "nowhere", "around": "around", "device": os.DevNull,
	} {
		link(t, to, filepath.Join(folder, name))
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	around, linked := errors.New("too many links"), filepath.Join(home, "link to the folder")
	link(t, "stranger", linked)
	for name, want := range map[string]error{
		"file": nil, "in": nil, "in by a full path": nil, "sub/up": nil, "chain": nil, "there and back": nil, "by a folder": nil,
		"out": links.ErrOut, "out by a full path": links.ErrOut, "sub/out": links.ErrOut, "chain out": links.ErrOut, "folder out": links.ErrOut,
		"out by a folder": links.ErrOut, "folder out/secret": links.ErrOut, "../secret": links.ErrOut, "device": links.ErrOut,
		"folder": links.ErrNotRegular, "sub": links.ErrNotRegular, "pipe": links.ErrNotRegular,
		"dangling": fs.ErrNotExist, "around": around,
	} {
		for _, path := range []string{folder, linked} {
			text, err := read(links.Folder{Path: path}, name)
			switch {
			case want == nil && (err != nil || text != own):
				t.Errorf("%s: %q, %v", name, text, err)
			case want == around && err == nil, want != nil && want != around && !errors.Is(err, want):
				t.Errorf("%s: %q, %v; expected %v", name, text, err, want)
			case want == links.ErrOut && !strings.Contains(err.Error(), filepath.Join(path, name)):
				t.Errorf("%s: the error does not name it: %v", name, err)
			}
		}
	}
	for name, want := range map[string]string{"out": secret, "file": own} {
		if text, err := read(links.Folder{Path: folder, Follow: true}, name); err != nil || text != want {
			t.Errorf("with Follow, %s: %q, %v", name, text, err)
		}
	}
	if _, err := (links.Folder{Path: folder, Follow: true}).Open("device"); !errors.Is(err, links.ErrNotRegular) {
		t.Errorf("with Follow, a device: %v", err)
	}
	if text, err := read(links.Folder{Path: folder, Also: filepath.Join(home, "private")}, "out by a folder"); err != nil || text != secret {
		t.Errorf("with Also: %q, %v", text, err)
	}
}

// A folder's path may be relative; links in it may be full paths all the same.
func TestRelativeFolder(t *testing.T) {
	home, folder := world(t)
	t.Chdir(home)
	link(t, filepath.Join(folder, "file"), filepath.Join(folder, "in"))
	if text, err := read(links.Folder{Path: "stranger"}, "in"); err != nil || text != own {
		t.Errorf("%q, %v", text, err)
	}
}

// A hub's cache has files under their hash in blobs, and a folder of links to them for each revision.
func TestHub(t *testing.T) {
	home := t.TempDir()
	hub := filepath.Join(home, "models--organisation--name")
	write(t, filepath.Join(hub, "blobs", "aaa"), own)
	write(t, filepath.Join(hub, "refs", "main"), secret)
	write(t, filepath.Join(home, "models--other--name", "blobs", "bbb"), secret)
	write(t, filepath.Join(home, "private", "bbb"), secret)
	revision := filepath.Join(hub, "snapshots", "revision")
	for name, to := range map[string]string{
		"file": "../../blobs/aaa", "onnx/file": "../../../blobs/aaa",
		"refs": "../../refs/main", "other": "../../../models--other--name/blobs/bbb", "private": "../../../private/bbb",
	} {
		link(t, to, filepath.Join(revision, name))
	}
	for _, c := range []struct {
		path, name string
		want       error
	}{
		{revision, "file", nil}, {revision, "onnx/file", nil}, {filepath.Join(revision, "onnx"), "file", nil},
		{revision, "refs", links.ErrOut}, {revision, "other", links.ErrOut}, {revision, "private", links.ErrOut},
	} {
		if text, err := read(links.Folder{Path: c.path}, c.name); !errors.Is(err, c.want) || err == nil && text != own {
			t.Errorf("%s in %s: %q, %v; expected %v", c.name, c.path, text, err, c.want)
		}
	}
	// The blobs may be a link too, and the name of the cache is what makes it one.
	if err := os.Rename(filepath.Join(hub, "blobs"), filepath.Join(hub, "moved")); err != nil {
		t.Fatal(err)
	}
	link(t, "../private", filepath.Join(hub, "blobs"))
	link(t, "../../blobs/bbb", filepath.Join(revision, "through"))
	if text, err := read(links.Folder{Path: revision}, "through"); !errors.Is(err, links.ErrOut) {
		t.Errorf("blobs that are a link: %q, %v", text, err)
	}
	write(t, filepath.Join(home, "work", "blobs", "aaa"), secret)
	link(t, "../../blobs/aaa", filepath.Join(home, "work", "snapshots", "revision", "file"))
	if text, err := read(links.Folder{Path: filepath.Join(home, "work", "snapshots", "revision")}, "file"); !errors.Is(err, links.ErrOut) {
		t.Errorf("no hub: %q, %v", text, err)
	}
}

// A file, a folder on the way and the blobs change all the time with links to the secret. What is opened is never the
// secret.
func TestChangingLinks(t *testing.T) {
	home, folder := world(t)
	hub := filepath.Join(home, "models--organisation--name")
	revision := filepath.Join(hub, "snapshots", "revision")
	write(t, filepath.Join(hub, "blobs", "secret"), own)
	write(t, filepath.Join(folder, "sub", "secret"), own)
	link(t, "../../blobs/secret", filepath.Join(revision, "file"))
	var stop atomic.Bool
	var running sync.WaitGroup
	for path, to := range map[string]string{filepath.Join(folder, "file"): "../secret", filepath.Join(folder, "sub"): "../private", filepath.Join(hub, "blobs"): "../private"} {
		running.Go(func() {
			for !stop.Load() {
				_ = os.Rename(path, path+".kept")
				_ = os.Symlink(to, path)
				_ = os.Remove(path)
				_ = os.Rename(path+".kept", path)
			}
		})
	}
	for _, of := range [][2]string{{folder, "file"}, {folder, "sub/secret"}, {revision, "file"}} {
		for range 3000 {
			if text, err := read(links.Folder{Path: of[0]}, of[1]); err == nil && text != own {
				t.Errorf("%s of %s held %q", of[1], filepath.Base(of[0]), text)
				break
			}
		}
	}
	stop.Store(true)
	running.Wait()
}

// A hard link is to the file that is open, or there is none.
func TestHard(t *testing.T) {
	home, folder := world(t)
	file, err := links.Folder{Path: folder}.Open("file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	name := filepath.Join(home, "another name")
	if err := links.Hard(file, name); err != nil {
		t.Fatal(err)
	}
	if text, err := read(links.Folder{Path: home}, "another name"); err != nil || text != own {
		t.Errorf("%q, %v", text, err)
	}
	if err := errors.Join(os.Remove(name), os.Rename(filepath.Join(home, "secret"), filepath.Join(folder, "file"))); err != nil {
		t.Fatal(err)
	}
	if err := links.Hard(file, name); err == nil {
		t.Error("what has the name now was linked")
	}
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it stays: %v", err)
	}
}
