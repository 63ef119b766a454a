package modelfolder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rope-rewrite/rope-rewrite/internal/clone"
	"github.com/rope-rewrite/rope-rewrite/internal/disk"
	"github.com/rope-rewrite/rope-rewrite/internal/links"
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

// CheckOutput refuses an output before any model is read, and clears up what a killed run left there. Write
// refuses what shows only later.
func CheckOutput(folder, output string, force bool) error {
	p, err := takePlace(folder, output)
	if err != nil {
		return err
	}
	defer p.release()
	return p.check(force)
}

// Write makes the new folder beside its place and then moves it there. When it fails or is
// interrupted, an existing folder is unchanged. It notes in Files how each file came along.
func (f *Folder) Write(ctx context.Context, output string, opts WriteOptions) error {
	p, err := takePlace(f.from.Path, output)
	if err != nil {
		return err
	}
	defer p.release()
	return f.writeTo(ctx, p, opts)
}

func (f *Folder) writeTo(ctx context.Context, p *place, opts WriteOptions) error {
	if err := p.check(opts.Force); err != nil {
		return err
	}
	if f.Unverified() {
		return ErrUnverified
	}
	if err := p.checkLoss(f); err != nil {
		return err
	}
	err := f.grow(ctx, p, opts)
	if err == nil {
		if err = p.replace(); err == nil {
			return p.removeOld()
		}
		err = unchanged(p.given, err)
	}
	_ = os.RemoveAll(p.stage()) // what stays is removed by the next run
	return err
}

// grow writes all files of the new folder, beside its place.
func (f *Folder) grow(ctx context.Context, p *place, opts WriteOptions) error {
	if err := os.Mkdir(p.stage(), 0o777); err != nil {
		return unchanged(p.given, err)
	}
	w := writing{from: f.from, stage: p.stage(), opts: opts, placed: map[string]onnx.Placement{}}
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
				return unchanged(filepath.Join(p.given, f.Files[i].Path), err)
			}
		}
	}
	return nil
}

// unchanged says that a file or a folder could not be written, and why.
func unchanged(name string, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk has no space for %s, and nothing was changed (%w); make space, or give another name with -o", name, syscall.ENOSPC)
	}
	return fmt.Errorf("%s could not be written, and nothing was changed: %w", name, disk.Cause(err))
}

// writing is a new folder that grows.
type writing struct {
	from   links.Folder
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
		return errors.Unwrap(l.model.Save(target, onnx.SaveOptions{ // which adds the hidden name
			Link:     w.opts.Link,
			Placed:   func(file onnx.PlacedFile) { w.placed[file.Path] = file.How },
			Progress: func(int64, int64) error { return ctx.Err() },
		}))
	case l.data != nil:
		return create(ctx, target, func(file *os.File) error {
			_, err := file.Write(l.data)
			return err
		})
	}
	how, err := w.placed[target], error(nil)
	if how == "" {
		how, err = w.bring(ctx, l.from, target)
	}
	x.What = What(how)
	return err
}

// bring links, clones or copies a file into the new folder.
func (w *writing) bring(ctx context.Context, from source, target string) (how onnx.Placement, err error) {
	if w.opts.Link && from.info.Size() >= largeFile && w.link(from, target) == nil {
		return onnx.Linked, nil
	}
	err = create(ctx, target, func(out *os.File) error {
		in, err := w.open(from)
		if err != nil {
			return err
		}
		defer in.Close()
		if how = onnx.Cloned; clone.File(out, in) != nil {
			how = onnx.Copied
			if _, err := io.Copy(out, in); err != nil {
				return err
			}
		}
		if now, err := in.Stat(); err != nil || !os.SameFile(from.info, now) || disk.Changed(from.info, now) {
			return errors.Join(err, fmt.Errorf("%s was changed in the meantime; run it again", in.Name()))
		}
		return nil
	})
	return how, err
}

func (w *writing) link(from source, target string) error {
	in, err := w.open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return links.Hard(in, target)
}

func (w *writing) open(from source) (*os.File, error) {
	return w.from.Open(filepath.FromSlash(from.path))
}

// create makes a file, which is on the disk before it is said to be there. It does not wait when ctx ends.
func create(ctx context.Context, target string, fill func(*os.File) error) error {
	file, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := fill(file)
		if err == nil {
			err = file.Sync()
		}
		done <- errors.Join(err, file.Close())
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
