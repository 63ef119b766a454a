package modelfolder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/clone"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// WriteOptions says how the new folder is written.
type WriteOptions struct {
	// Force replaces an existing folder, if the new one has all of its files.
	Force bool
	// Link hard-links large files in place of copying them, where that is possible.
	Link bool
	// Progress, if set, is told what is being written.
	Progress func(string)
}

// ErrUnverified says that a model has a layer that could not be rewritten.
var ErrUnverified = errors.New("not every attention layer of every model could be rewritten")

// largeFile is the size from which on files that come along may be linked. Smaller ones are copied:
// people edit them, and an edit of a link would change the original.
const largeFile = 1 << 20

// CheckOutput refuses an output before any model is read. Write refuses what shows only later.
func CheckOutput(folder, output string, force bool) error {
	return (&Folder{path: folder}).checkPlace(output, force)
}

func (f *Folder) checkPlace(output string, force bool) error {
	parent := filepath.Dir(filepath.Clean(output))
	if !isFolder(parent) {
		return fmt.Errorf("%s is not a folder; make it first or give another name with -o", parent)
	}
	if inside(output, f.path) {
		return fmt.Errorf("%s is the input folder or inside it, and originals are never changed; give another name with -o", output)
	}
	switch {
	case missing(output):
		return nil
	case !isFolder(output):
		return fmt.Errorf("%s is not a folder; a model folder is written to a folder", output)
	case !force && !empty(output):
		return fmt.Errorf("%s exists; give --force to replace it or -o for another name", output)
	}
	return nil
}

// inside reports whether a path is a folder or below it.
func inside(name, folder string) bool {
	home, err := os.Stat(folder)
	if err != nil {
		return false
	}
	name, err = filepath.Abs(name)
	for err == nil {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, home) {
			return true
		}
		up := filepath.Dir(name)
		if up == name {
			return false
		}
		name = up
	}
	return false
}

func empty(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && len(entries) == 0
}

func (f *Folder) check(output string, force bool) error {
	if err := f.checkPlace(output, force); err != nil {
		return err
	}
	if f.Unverified() {
		return ErrUnverified
	}
	if !isFolder(output) {
		return nil
	}
	earlier, err := readRecord(output)
	if err != nil {
		return err
	}
	return filepath.WalkDir(output, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(output, name)
		rel = filepath.ToSlash(rel)
		if err == nil && !f.has(rel) && !slices.Contains(earlier.Added, rel) {
			return fmt.Errorf("%s would be lost, because the new folder does not contain it; move it away, or give another name with -o", name)
		}
		return err
	})
}

// Write makes the new folder beside its place and then moves it there. When it fails or is
// interrupted, an existing folder is unchanged. It notes in Files how each file came along.
func (f *Folder) Write(ctx context.Context, output string, opts WriteOptions) (err error) {
	if err := f.check(output, opts.Force); err != nil {
		return err
	}
	output = filepath.Clean(output)
	stage, err := newStage(output)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(stage))
		}
	}()
	w := writing{stage: stage, opts: opts, placed: map[string]onnx.Placement{}}
	for _, models := range []bool{true, false} { // models place their weights
		for i := range f.Files {
			if models != (f.lines[i].model != nil) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if opts.Progress != nil {
				opts.Progress("writing " + f.Files[i].Path)
			}
			if err := w.file(ctx, &f.Files[i], f.lines[i]); err != nil {
				return fmt.Errorf("%s: %w", f.Files[i].Path, err)
			}
		}
	}
	return replace(stage, output)
}

// newStage makes the folder beside the output in which the new one grows. One that an interrupted
// run left is removed: only this package makes folders of that name.
func newStage(output string) (string, error) {
	stage := filepath.Join(filepath.Dir(output), "."+filepath.Base(output)+".rope-rewrite-part")
	if err := os.RemoveAll(stage); err != nil {
		return "", err
	}
	return stage, os.Mkdir(stage, 0o777)
}

// replace moves the new folder to its place. An existing folder is put aside until then.
func replace(stage, output string) error {
	if missing(output) {
		return os.Rename(stage, output)
	}
	aside := stage + "-old"
	if err := os.Rename(output, aside); err != nil {
		return err
	}
	if err := os.Rename(stage, output); err != nil {
		return errors.Join(err, os.Rename(aside, output))
	}
	return os.RemoveAll(aside)
}

// writing is a new folder that grows.
type writing struct {
	stage  string
	opts   WriteOptions
	placed map[string]onnx.Placement // weights that models placed, by path
}

func (w *writing) file(ctx context.Context, x *File, l line) error {
	target := filepath.Join(w.stage, filepath.FromSlash(x.Path))
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	switch {
	case l.model != nil:
		return l.model.Save(target, onnx.SaveOptions{
			Link:     w.opts.Link,
			Placed:   func(file onnx.PlacedFile) { w.placed[file.Path] = file.How },
			Progress: func(int64, int64) error { return ctx.Err() },
		})
	case l.data != nil:
		return os.WriteFile(target, l.data, 0o666)
	}
	how, err := w.placed[target], error(nil)
	if how == "" {
		how, err = bring(l.from, target, w.opts.Link)
	}
	x.What = What(how)
	return err
}

// bring links, clones or copies a file into the new folder.
func bring(from source, target string, link bool) (onnx.Placement, error) {
	if link && from.size >= largeFile && os.Link(from.file, target) == nil {
		return onnx.Linked, nil
	}
	in, err := os.Open(from.file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	how := onnx.Cloned
	if clone.File(out, in) != nil {
		how = onnx.Copied
		_, err = io.Copy(out, in)
	}
	return how, errors.Join(err, out.Close())
}
