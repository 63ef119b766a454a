package npz

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	npyz "github.com/sbinet/npyio/npz"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// File is an open archive.
type File struct {
	path   string
	reader *npyz.Reader
	sizes  map[string]uint64 // the most bytes that an array can have
}

// Open opens the archive at path. The caller closes it.
func Open(path string) (file *File, err error) {
	defer refused(path, &err)
	sizes, err := sizesOf(path)
	var reader *npyz.Reader
	if err == nil {
		reader, err = npyz.Open(path)
	}
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) {
		return nil, fmt.Errorf("%s: %w", path, missing.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &File{path: path, reader: reader, sizes: sizes}, nil
}

// sizesOf returns the most bytes that each array of an archive can have. What an archive says of itself
// can be anything; no compression makes more than some thousand bytes of one.
func sizesOf(path string) (map[string]uint64, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	sizes := map[string]uint64{}
	for _, f := range z.File {
		sizes[f.Name] = min(f.UncompressedSize64, min(f.CompressedSize64, uint64(info.Size()))*1100)
	}
	return sizes, nil
}

// refused makes an error of a panic: the library that reads arrays has some for headers that NumPy does not write.
func refused(path string, err *error) {
	if recover() != nil {
		*err = fmt.Errorf("%s holds an array whose header cannot be read; write it with numpy.savez", path)
	}
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

// Float64 reads a float64 array.
func (f *File) Float64(key string) (data []float64, shape []int, err error) {
	return read[float64](f, key, "<f8")
}

// Int64 reads an int64 array.
func (f *File) Int64(key string) (data []int64, shape []int, err error) {
	return read[int64](f, key, "<i8")
}

func read[T any](f *File, key, kind string) (data []T, shape []int, err error) {
	defer refused(f.path, &err)
	name := key + ".npy"
	if !slices.Contains(f.reader.Keys(), name) {
		has := f.Keys()
		for i, name := range has {
			has[i] = strconv.Quote(short.Name(name))
		}
		return nil, nil, fmt.Errorf("%s has no array %q; it has %s", f.path, key, strings.Join(has, ", "))
	}
	header := f.reader.Header(name)
	if header == nil {
		return nil, nil, fmt.Errorf("%s: array %q has no readable header", f.path, key)
	}
	if header.Descr.Type != kind || header.Descr.Fortran {
		return nil, nil, fmt.Errorf("%s: array %q is %q (column-major: %t), want %q in rows", f.path, key, short.Name(header.Descr.Type), header.Descr.Fortran, kind)
	}
	if left := f.sizes[name] / uint64(unsafe.Sizeof(*new(T))); !fits(header.Descr.Shape, left) {
		return nil, nil, fmt.Errorf("%s: array %q has the shape %v, which is more than the file holds", f.path, key, header.Descr.Shape)
	}
	if err := f.reader.Read(name, &data); err != nil {
		return nil, nil, fmt.Errorf("%s: array %q: %w", f.path, key, err)
	}
	return data, header.Descr.Shape, nil
}

// fits says whether an array of a shape has at most so many elements.
func fits(shape []int, most uint64) bool {
	count := uint64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && count > most/uint64(d) {
			return false
		}
		count *= uint64(d)
	}
	return count <= most
}
