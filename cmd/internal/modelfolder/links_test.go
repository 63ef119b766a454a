package modelfolder

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

const private = "-----BEGIN OPENSSH PRIVATE KEY-----"

// fill makes files of a folder, by their contents.
func fill(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// linked makes links of a folder, by what they lead to.
func linked(t *testing.T, home string, list map[string]string) {
	t.Helper()
	for name, to := range list {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.Symlink(to, path)); err != nil {
			t.Skip("this system does not let the test make links: ", err)
		}
	}
}

// written rewrites a folder beside it, and gives its files' contents by path, and what was left out.
func written(t *testing.T, folder string, follow bool, between func()) (files map[string]string, f *Folder) {
	t.Helper()
	runtime, library := testruntime.Paths(t)
	opts := rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}}}
	opts.Source.FollowLinks = follow
	f, err := Prepare(t.Context(), folder, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	between()
	output := filepath.Join(t.TempDir(), "new")
	if err := f.Write(t.Context(), output, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	err = filepath.WalkDir(output, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			t.Errorf("%s is not a file", path)
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(output, path)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, f
}

func modelFiles(t *testing.T, name string) (model, config string) {
	t.Helper()
	var texts [2]string
	for i, file := range []string{"model.onnx", "config.json"} {
		data, err := os.ReadFile(filepath.Join("../../../testdata/models", name, file))
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(data)
	}
	return texts[0], texts[1]
}

// A stranger's folder copies nothing of the user's into the new one, unless the user says so.
func TestLinksOut(t *testing.T) {
	home := t.TempDir()
	model, config := modelFiles(t, "llama__dynamo18")
	fill(t, home, map[string]string{"id_rsa": private, "private/model.onnx": model, "private/config.json": config, "private/note": private,
		"folder/model.onnx": model, "folder/vocab.txt": "words", "folder/sub/file": "words"})
	linked(t, filepath.Join(home, "folder"), map[string]string{
		"special_tokens_map.json": "../id_rsa", "sub/out": "../../id_rsa", "absolute": filepath.Join(home, "id_rsa"), "chain": "sub/out", "notes": "../private",
		"config.json": "../private/config.json", "other.onnx": "../private/model.onnx", "in": "sub/file", "sub/in": "../vocab.txt",
	})
	files, f := written(t, filepath.Join(home, "folder"), false, func() {})
	if got, want := slices.Sorted(maps.Keys(files)), []string{"in", "model.onnx", recordFile, "sub/file", "sub/in", "vocab.txt"}; !slices.Equal(got, want) {
		t.Errorf("written: %q, expected %q", got, want)
	}
	for name, text := range files {
		if strings.Contains(text, private) {
			t.Errorf("%s has the private text", name)
		}
	}
	const why = " (a link out of the folder)"
	left := []string{"absolute" + why, "chain" + why, "config.json" + why, "notes" + why, "other.onnx" + why, "special_tokens_map.json" + why, "sub/out" + why}
	if !slices.Equal(f.Left, left) {
		t.Errorf("left out: %q, expected %q", f.Left, left)
	}
	report := f.Files[slices.IndexFunc(f.Files, func(x File) bool { return x.Path == "model.onnx" })].Report
	if !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "config.json is a link out of the folder") }) {
		t.Errorf("warnings: %q", report.Warnings)
	}
	files, f = written(t, filepath.Join(home, "folder"), true, func() {})
	if files["special_tokens_map.json"] != private || files["sub/out"] != private || files["other.onnx"] == "" || files["config.json"] == "" || !slices.Equal(f.Left, []string{"notes"}) {
		t.Errorf("with FollowLinks: %q, left out %q", slices.Sorted(maps.Keys(files)), f.Left)
	}
}

// A hub's cache is made of links, and what comes along are files.
func TestHubCache(t *testing.T) {
	home := t.TempDir()
	model, config := modelFiles(t, "llama__dynamo18")
	fill(t, home, map[string]string{"models--a--b/blobs/1": model, "models--a--b/blobs/2": config, "models--a--b/blobs/3": "words", "models--c--d/blobs/4": private})
	revision := filepath.Join(home, "models--a--b", "snapshots", "revision")
	linked(t, revision, map[string]string{"onnx/model.onnx": "../../../blobs/1", "config.json": "../../blobs/2", "vocab.txt": "../../blobs/3", "other": "../../../models--c--d/blobs/4"})
	files, f := written(t, revision, false, func() {})
	if len(f.Left) != 1 || len(files) != 4 || files["vocab.txt"] != "words" || files["config.json"] == "" || files["onnx/model.onnx"] == "" {
		t.Errorf("written: %q, left out %q", slices.Sorted(maps.Keys(files)), f.Left)
	}
}

// What was a file when the folder was looked at may be a link when it is read.
func TestLinkMadeMeanwhile(t *testing.T) {
	home := t.TempDir()
	fill(t, home, map[string]string{"id_rsa": private, "folder/file": "words", "private/model.onnx": private, "folder/model.onnx": "x"})
	f := &Folder{from: links.Folder{Path: filepath.Join(home, "folder")}}
	files, _, err := scan(f.from)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for name, to := range map[string]string{"file": "../id_rsa", "model.onnx": "../private/model.onnx"} {
		if err := os.Remove(filepath.Join(home, "folder", name)); err != nil {
			t.Fatal(err)
		}
		linked(t, filepath.Join(home, "folder"), map[string]string{name: to})
	}
	for _, link := range []bool{false, true} {
		w := writing{from: f.from, stage: home, opts: WriteOptions{Link: link}}
		files[0].info = large{files[0].info} // so that it may be linked
		target := filepath.Join(home, "target")
		if _, err := w.bring(t.Context(), files[0], target); !errors.Is(err, links.ErrOut) {
			data, _ := os.ReadFile(target)
			t.Errorf("brought: %q, %v", data, err)
		}
		if err := os.RemoveAll(target); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.open(files[1]); !errors.Is(err, links.ErrOut) || errors.Is(err, onnx.ErrFormat) {
		t.Errorf("a model: %v", err)
	}
}

type large struct{ os.FileInfo }

func (large) Size() int64 { return largeFile }
