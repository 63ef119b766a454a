package links

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrOut says that a file of a folder is a link out of it.
var ErrOut = errors.New("a link out of the folder")

// ErrNotRegular says that a file is a folder, a device, a pipe or the like.
var ErrNotRegular = errors.New("not a regular file")

// Folder is a model's folder. A link in it is followed where it stays in the folder, and from a snapshot of a Hugging
// Face hub's cache into the blobs of the same repository.
type Folder struct {
	Path   string
	Also   string // another folder into which links may lead, without links in its own path; "" is none
	Follow bool   // every link, because the user says so
}

// Open opens a regular file that the user named, so that links are followed. The error wraps ErrNotRegular or
// fs.ErrNotExist.
func Open(path string) (*os.File, error) { return openRegular(path, os.Stat, os.OpenFile, path) }

// Open opens a regular file by its path from the folder. The error wraps ErrOut, ErrNotRegular or fs.ErrNotExist.
//
// A link may be changed after it was looked at. So what is opened is looked for below a root that no link leaves: what
// was examined before says only which root.
func (f Folder) Open(name string) (*os.File, error) {
	given := filepath.Join(f.Path, name)
	if f.Follow {
		return Open(given)
	}
	home, err := filepath.Abs(f.Path)
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(filepath.Join(home, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "open", Path: given, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	for _, in := range f.roots(home) {
		rel, err := filepath.Rel(filepath.Join(in...), real)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		root, err := openRoot(in)
		if err != nil {
			return nil, named(given, err)
		}
		defer root.Close()
		file, err := openRegular(rel, root.Stat, root.OpenFile, given)
		return file, named(given, err)
	}
	return nil, fmt.Errorf("%s is %w", given, ErrOut)
}

// roots are the folders in which a file may lie. Each step below the first leads through no link out of the one before.
func (f Folder) roots(home string) [][]string {
	list := [][]string{{home}}
	if f.Also != "" {
		list = append(list, []string{f.Also})
	}
	for dir := home; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		snapshots := filepath.Dir(dir)
		repository := filepath.Dir(snapshots) // models--organisation--name/snapshots/revision
		if filepath.Base(snapshots) == "snapshots" && strings.HasPrefix(filepath.Base(repository), "models--") {
			list = append(list, []string{repository, "blobs"})
		}
	}
	return list
}

func openRoot(in []string) (*os.Root, error) {
	root, err := os.OpenRoot(in[0])
	for _, step := range in[1:] {
		if err != nil {
			return nil, err
		}
		above := root
		root, err = above.OpenRoot(step)
		above.Close()
	}
	return root, err
}

// named gives an error of a root the path that was asked for. A link that leads out of a root has no number of the
// system's, and package os has no name for it.
func named(given string, err error) error {
	failed := (*fs.PathError)(nil)
	switch {
	case !errors.As(err, &failed):
		return err
	case !errors.As(failed.Err, new(syscall.Errno)):
		return fmt.Errorf("%s is %w", given, ErrOut)
	}
	return &fs.PathError{Op: "open", Path: given, Err: failed.Err}
}

// openRegular asks first what the file is, because opening a device can do something already. It may be another by the
// time it is open: a pipe must not block then.
func openRegular(name string, stat func(string) (fs.FileInfo, error), open func(string, int, fs.FileMode) (*os.File, error), given string) (*os.File, error) {
	info, err := stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is %w", given, ErrNotRegular)
	}
	if err != nil {
		return nil, err
	}
	file, err := open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is %w", given, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Hard gives an open file another name. What has its first name may be another file by now, and is then not linked.
func Hard(file *os.File, name string) error {
	if err := os.Link(file.Name(), name); err != nil {
		return err
	}
	linked, err := os.Lstat(name)
	is, failed := file.Stat()
	if err = errors.Join(err, failed); err == nil && !os.SameFile(linked, is) {
		err = fmt.Errorf("%s was changed in the meantime", file.Name())
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
