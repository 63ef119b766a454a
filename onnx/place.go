package onnx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/clone"
	"github.com/rope-rewrite/rope-rewrite/internal/disk"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// dataFile is a file of external data that a saved model needs beside it.
type dataFile struct {
	folder   *folder
	location string
	size     int64
}

// dataToPlace lists the external data that the model refers to and that is not
// in the folder of path already.
func (m *Model) dataToPlace(path string) ([]dataFile, error) {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var list []dataFile
	owner := make(map[string]*folder)
	for t := range m.tensors() {
		if t.external == nil || t.folder == nil {
			continue
		}
		location := filepath.Clean(filepath.FromSlash(t.external.location))
		if other, ok := owner[location]; ok {
			if other != t.folder && !sameFolder(other, t.folder) {
				return nil, fmt.Errorf("external data %q of %s and of %s would overwrite each other", short.Name(location), other.model, t.folder.model)
			}
			continue
		}
		owner[location] = t.folder
		if filepath.Join(filepath.Dir(path), location) == filepath.Clean(path) {
			return nil, fmt.Errorf("%w: the model's external data has that name; choose another", ErrRefused)
		}
		if home, err := os.Stat(filepath.Dir(t.folder.model)); err == nil && os.SameFile(home, dir) {
			continue
		}
		file, err := t.folder.open(t.external.location)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		file.Close()
		if err != nil {
			return nil, err
		}
		list = append(list, dataFile{t.folder, t.external.location, info.Size()})
	}
	return list, nil
}

func sameFolder(a, b *folder) bool {
	x, errX := os.Stat(filepath.Dir(a.model))
	y, errY := os.Stat(filepath.Dir(b.model))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// stage prepares the file at its location below dir, and says how. It returns nil if
// the same data is there already, and then no placement unless it is the very file.
func (d dataFile) stage(dir string, opts SaveOptions, progress *meter) (s *staged, how Placement, err error) {
	from, err := d.folder.open(d.location)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if s == nil || s.file != from {
			from.Close()
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	location := filepath.FromSlash(d.location)
	// Root follows no link that leads out of dir.
	if err := root.MkdirAll(filepath.Dir(location), 0o777); err != nil {
		return nil, "", fmt.Errorf("external data %q: %w", short.Name(d.location), err)
	}
	target := filepath.Join(dir, location)
	switch same, err := sameData(root, location, from, progress); {
	case err != nil:
		return nil, "", fmt.Errorf("external data %q: %w", short.Name(d.location), err)
	case same == one && (opts.Link || !opts.Force):
		return nil, Linked, progress.add(d.size)
	case same == identical:
		return nil, "", progress.add(d.size)
	case same == different && !opts.Force:
		return nil, "", fmt.Errorf("another file already has the name of the external data %q: %w; choose another folder or force it to be replaced", short.Name(d.location), fs.ErrExist)
	}
	if err := checkReplaceable(target); err != nil {
		return nil, "", err
	}
	if opts.Link {
		if s, err := linkStaged(from, target, opts.Force); err == nil {
			return s, Linked, progress.add(d.size)
		}
	}
	s, err = createStaged(target, opts.Force)
	if err != nil {
		return nil, "", err
	}
	if clone.File(s.file, from) == nil {
		return s, Cloned, progress.add(d.size)
	}
	before, err := from.Stat()
	if err == nil {
		err = copyFile(s.file, from, progress)
	}
	if now, failed := from.Stat(); err == nil && (failed != nil || disk.Changed(before, now)) {
		err = errors.Join(failed, errors.New("it was changed in the meantime; save again"))
	}
	if err != nil {
		s.discard()
		return nil, "", fmt.Errorf("copying external data %q: %w", short.Name(d.location), err)
	}
	return s, Copied, nil
}

// likeness is how a file that is in the way compares.
type likeness int

const (
	absent    likeness = iota
	one                // it is the same file, by a link
	identical          // another with the same contents
	different
)

// sameData compares a file below root with an open one.
func sameData(root *os.Root, name string, with *os.File, progress *meter) (likeness, error) {
	link, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return absent, nil
	}
	if err != nil {
		return different, err
	}
	if link.IsDir() {
		return different, errors.New("a folder has that name")
	}
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return different, nil // a link that is broken or leads out
	}
	want, err := with.Stat()
	if err != nil {
		return different, err
	}
	if os.SameFile(info, want) {
		return one, nil
	}
	if info.Size() != want.Size() {
		return different, nil
	}
	file, err := root.Open(name)
	if err != nil {
		return different, err
	}
	defer file.Close()
	same, err := equalContents(io.NewSectionReader(file, 0, want.Size()), io.NewSectionReader(with, 0, want.Size()), progress)
	if err != nil || !same {
		return different, err
	}
	return identical, nil
}

func equalContents(a, b io.Reader, progress *meter) (bool, error) {
	x, y := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		if err := progress.add(0); err != nil {
			return false, err
		}
		n, err := io.ReadFull(a, x)
		k, errB := io.ReadFull(b, y)
		if n != k || !bytes.Equal(x[:n], y[:k]) {
			return false, nil
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return true, nil
		}
		if err := errors.Join(err, errB); err != nil {
			return false, err
		}
	}
}
