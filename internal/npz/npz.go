package npz

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	npyz "github.com/sbinet/npyio/npz"
)

// File is an open archive.
type File struct {
	path   string
	reader *npyz.Reader
}

// Open opens the archive at path. The caller closes it.
func Open(path string) (*File, error) {
	reader, err := npyz.Open(path)
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) {
		return nil, fmt.Errorf("%s: %w", path, missing.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{path: path, reader: reader}, nil
}

// Close closes the archive.
func (f *File) Close() error { return f.reader.Close() }

// Keys lists the arrays of the archive, sorted.
func (f *File) Keys() []string {
	keys := slices.Clone(f.reader.Keys())
	for i, key := range keys {
		keys[i] = strings.TrimSuffix(key, ".npy")
	}
	slices.Sort(keys)
	return keys
}

// Float32 reads a float32 array.
func (f *File) Float32(key string) (data []float32, shape []int, err error) {
	return read[float32](f, key, "<f4")
}

// Int64 reads an int64 array.
func (f *File) Int64(key string) (data []int64, shape []int, err error) {
	return read[int64](f, key, "<i8")
}

func read[T any](f *File, key, kind string) ([]T, []int, error) {
	name := key + ".npy"
	if !slices.Contains(f.reader.Keys(), name) {
		return nil, nil, fmt.Errorf("%s has no array %q; it has %s", f.path, key, strings.Join(f.Keys(), ", "))
	}
	header := f.reader.Header(name)
	if header == nil {
		return nil, nil, fmt.Errorf("%s: array %q has no readable header", f.path, key)
	}
	if header.Descr.Type != kind || header.Descr.Fortran {
		return nil, nil, fmt.Errorf("%s: array %q is %s (column-major: %t), want %s in rows", f.path, key, header.Descr.Type, header.Descr.Fortran, kind)
	}
	var data []T
	if err := f.reader.Read(name, &data); err != nil {
		return nil, nil, fmt.Errorf("%s: array %q: %w", f.path, key, err)
	}
	return data, header.Descr.Shape, nil
}
