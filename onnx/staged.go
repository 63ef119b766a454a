package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/disk"
	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

// staged is a file that is complete but not yet at its path.
type staged struct {
	path    string
	replace bool     // a file that stands at path
	name    string   // of the temporary file; "" if it has none
	linked  bool     // it is the original's file, on the disk already
	file    *os.File // held until it is placed, so that a later save does not take it for a killed one's

	placed bool   // it stands at path
	old    string // a second name of what stood there; "" if nothing did, or the file system gives none
	fresh  bool   // nothing stood there
}

// createStaged creates an empty temporary file in the folder of path. It has
// no name where the system can do that, so that it vanishes with the process.
func createStaged(path string, replace bool) (*staged, error) {
	if file := createNameless(path); file != nil {
		disk.Hold(file)
		return &staged{path: path, replace: replace, file: file}, nil
	}
	return createNamed(path, replace)
}

// createNamed is createStaged for other systems.
func createNamed(path string, replace bool) (*staged, error) {
	for {
		name := temporaryName(path)
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		disk.Hold(file)
		is, errIs := file.Stat()
		if named, err := os.Lstat(name); err == nil && errIs == nil && os.SameFile(named, is) {
			return &staged{path: path, replace: replace, name: name, file: file}, nil
		}
		file.Close() // another save removed it before it was held
	}
}

// linkStaged stages a hard link to an open file, which it closes later.
func linkStaged(existing *os.File, path string, replace bool) (*staged, error) {
	name := temporaryName(path)
	disk.Hold(existing)
	if err := links.Hard(existing, name); err != nil {
		return nil, err
	}
	return &staged{path: path, replace: replace, name: name, linked: true, file: existing}, nil
}

// clearUp removes what killed saves left in the folder of path. What cannot be removed costs space alone.
func clearUp(path string) {
	dir := filepath.Dir(path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if temporary.MatchString(e.Name()) && e.Type().IsRegular() {
			disk.RemoveAbandoned(filepath.Join(dir, e.Name()))
		}
	}
}

var temporary = regexp.MustCompile(`^\.rope-rewrite-[0-9a-f]{8}\.tmp$`)

// temporaryName is short, whatever the file is called: names have at most 255 bytes.
func temporaryName(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".rope-rewrite-%08x.tmp", rand.Uint32()))
}

// finishAll brings all files to the disk, so that only the moves are left to fail.
func finishAll(files []*staged, progress *meter) error {
	for _, s := range files {
		if err := s.finish(progress); err != nil {
			return err
		}
	}
	return nil
}

// placeAll makes all finished files appear at their paths, in their order, or leaves what was there.
func placeAll(files []*staged) error {
	for i, s := range files {
		if err := s.place(); err != nil {
			for _, placed := range slices.Backward(files[:i+1]) {
				err = errors.Join(err, placed.takeBack())
			}
			return err
		}
	}
	for _, s := range files {
		if s.old != "" {
			os.Remove(s.old)
			s.old = ""
		}
	}
	return nil
}

// finish brings the file to the disk and gives it a name.
func (s *staged) finish(progress *meter) error {
	if s.file != nil && !s.linked {
		if err := progress.during(s.file.Sync); err != nil {
			return err
		}
	}
	if s.name == "" {
		s.name = temporaryName(s.path)
		if err := nameFile(s.file, s.name); err != nil {
			s.name = ""
			return err
		}
	}
	if s.file != nil && !disk.CanHold {
		return s.close()
	}
	return nil
}

func (s *staged) close() error {
	if s.file == nil {
		return nil
	}
	defer func() { s.file = nil }()
	return s.file.Close()
}

// place moves the file to its path, for good.
func (s *staged) place() error {
	_, err := os.Lstat(s.path)
	if err == nil && !s.replace {
		return fmt.Errorf("%s appeared in the meantime: %w", s.path, fs.ErrExist)
	}
	s.fresh = errors.Is(err, fs.ErrNotExist)
	if err := checkReplaceable(s.path); err != nil {
		return err
	}
	if !s.fresh {
		old := temporaryName(s.path)
		if os.Link(s.path, old) == nil { // without links a move that fails later cannot be taken back
			s.old = old
		}
	}
	if err := os.Rename(s.name, s.path); err != nil {
		return err
	}
	s.name, s.placed = "", true
	return errors.Join(s.close(), disk.SyncFolder(filepath.Dir(s.path)))
}

// takeBack undoes place.
func (s *staged) takeBack() (err error) {
	switch {
	case s.placed && s.old != "":
		err = os.Rename(s.old, s.path)
	case s.placed && s.fresh:
		err = os.Remove(s.path)
	case s.old != "":
		err = os.Remove(s.old)
	}
	s.old, s.placed = "", false
	return err
}

// checkReplaceable refuses what is no file: a device, a pipe, a socket, or a
// link to one or to a folder. Nothing at path, or a broken link, is no error.
func checkReplaceable(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file, and only regular files are replaced; choose another name: %w", path, ErrRefused)
	}
	return err
}

// discard removes what commit did not use.
func (s *staged) discard() {
	s.close()
	if s.name != "" {
		os.Remove(s.name)
		s.name = ""
	}
}
