package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// ErrRefused is wrapped by errors about external data that a model must not
// name, such as files outside its folder.
var ErrRefused = errors.New("refused")

// folder is where a model's external data lies. Several goroutines may use it.
type folder struct {
	model  string // path of the model's file
	behind string // where the file stands if that is a link which the user named, else ""

	mu        sync.Mutex
	maps      map[string]*mapping // by location
	locations map[string]bool     // that the model names, used or not
}

// note records a location that the model names.
func (f *folder) note(location string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.locations == nil {
		f.locations = make(map[string]bool)
	}
	f.locations[location] = true
}

// holds reports whether a file is one of the model's external data.
func (f *folder) holds(info fs.FileInfo) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for location := range f.locations {
		file, err := f.open(location)
		if err != nil {
			continue // missing, or none of ours
		}
		own, err := file.Stat()
		file.Close()
		if err == nil && os.SameFile(own, info) {
			return true
		}
	}
	return false
}

// size returns the length of the file at a location.
func (f *folder) size(location string) (int64, error) {
	if f == nil {
		return 0, errNoFolder(location)
	}
	file, err := f.open(location)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("external data %q: %w", short.Name(location), err)
	}
	return info.Size(), nil
}

func errNoFolder(location string) error {
	return fmt.Errorf("external data %q: the model was not opened from a file, so its folder is unknown: %w", short.Name(location), fs.ErrNotExist)
}

// data returns the contents of the file at a location, mapped.
func (f *folder) data(location string) ([]byte, error) {
	if f == nil {
		return nil, errNoFolder(location)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.maps[location]; m != nil {
		return m.data, nil
	}
	file, err := f.open(location)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	m, err := mapFile(file)
	if err != nil {
		return nil, fmt.Errorf("external data %q: %w", short.Name(location), err)
	}
	if f.maps == nil {
		f.maps = make(map[string]*mapping)
	}
	f.maps[location] = m
	return m.data, nil
}

// open opens the file at a location, which must lie inside the model's folder: the one in which the model's path stands
// or, if its user named a link, the one in which the file stands to which it leads.
func (f *folder) open(location string) (*os.File, error) {
	if err := checkLocation(location); err != nil {
		return nil, err
	}
	file, err := links.Folder{Path: filepath.Dir(f.model), Also: f.behind}.Open(filepath.FromSlash(location))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &FileError{f.model, fmt.Errorf("external data %q is missing beside %s: %w", short.Name(location), f.model, fs.ErrNotExist)}
	case errors.Is(err, links.ErrOut):
		return nil, fmt.Errorf("external data %q leads outside the model's folder: %w", short.Name(location), ErrRefused)
	case errors.Is(err, links.ErrNotRegular):
		return nil, fmt.Errorf("external data %q is not a regular file: %w", short.Name(location), ErrRefused)
	case err != nil:
		return nil, fmt.Errorf("external data %q: %w", short.Name(location), err)
	}
	return file, nil
}

// longestLocation is how long a path may be on the systems that a model comes from.
const longestLocation = 4096

// checkLocation refuses locations that are not plain relative paths.
func checkLocation(location string) error {
	reason := ""
	switch {
	case len(location) > longestLocation:
		return fmt.Errorf("the external data location %q… has %d bytes, more than the %d of a path: %w", short.Name(location[:64]), len(location), longestLocation, ErrRefused)
	case strings.ContainsRune(location, 0):
		reason = "holds a NUL byte"
	case strings.HasPrefix(location, "/") || strings.HasPrefix(location, `\`) || filepath.VolumeName(location) != "":
		reason = "is an absolute path"
	case hasParent(location):
		reason = `holds ".."`
	case !filepath.IsLocal(filepath.FromSlash(location)):
		reason = "is not a path inside a folder"
	default:
		return nil
	}
	return fmt.Errorf("the external data location %q %s: %w", short.Name(location), reason, ErrRefused)
}

func hasParent(location string) bool {
	for _, part := range strings.FieldsFunc(location, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return true
		}
	}
	return false
}

// close releases the mapped files.
func (f *folder) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, m := range f.maps {
		errs = append(errs, m.close())
	}
	f.maps = nil
	return errors.Join(errs...)
}
