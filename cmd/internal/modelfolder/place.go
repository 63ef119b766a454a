package modelfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/disk"
	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

// place is where a new folder goes. Beside it are, under hidden names, the new folder while it grows, the
// old one while the two change places, and the lock of the run that has the place.
type place struct {
	given string // as the user wrote it
	path  string // from the root, with links followed
	lock  *os.File
}

var errTaken = errors.New("another run of rope-rewrite is writing it")

// takePlace makes a place this run's alone, until it is released, and clears up what a killed run left there.
func takePlace(input, output string) (*place, error) {
	p := &place{given: output}
	parent := filepath.Dir(filepath.Clean(output))
	if !isFolder(parent) {
		return nil, fmt.Errorf("%s is not a folder; make it first or give another name with -o", parent)
	}
	var err error
	if p.path, err = filepath.Abs(output); err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	switch {
	case inside(output, input):
		return nil, fmt.Errorf("%s is the input folder or inside it, and originals are never changed; give another name with -o", output)
	case inside(input, output):
		return nil, fmt.Errorf("%s contains the input folder, and originals are never changed; give another name with -o", output)
	case inside(here, output):
		return nil, fmt.Errorf("%s contains the current folder, which would be replaced too; give another name with -o", output)
	case isFolder(p.path): // it is a link to one, maybe
		if p.path, err = filepath.EvalSymlinks(p.path); err != nil {
			return nil, err
		}
	}
	if p.lock, err = takeLock(p.beside("lock")); errors.Is(err, errTaken) {
		return nil, fmt.Errorf("%s: %w; wait for it, or give another name with -o", output, err)
	}
	if err != nil {
		return nil, fmt.Errorf("nothing can be written in %s: %w; give another name with -o", filepath.Dir(p.path), disk.Cause(err))
	}
	if err := p.clearUp(); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

// beside is a name beside the place that only this package uses.
func (p *place) beside(what string) string {
	return filepath.Join(filepath.Dir(p.path), "."+filepath.Base(p.path)+".rope-rewrite-"+what)
}

func (p *place) stage() string { return p.beside("part") }

func (p *place) aside() string { return p.beside("part-old") }

// clearUp removes what a killed run left. An old folder that was moved away comes back if no new one took its place.
func (p *place) clearUp() error {
	var err error
	if missing(p.path) && !missing(p.aside()) {
		err = os.Rename(p.aside(), p.path)
	} else {
		err = os.RemoveAll(p.aside())
	}
	if err = errors.Join(err, os.RemoveAll(p.stage())); err != nil {
		return fmt.Errorf("what an earlier run left beside %s cannot be moved away: %w", p.given, disk.Cause(err))
	}
	return nil
}

// release lets other runs have the place. A lock that stays is free, and the next run removes it.
func (p *place) release() { _ = releaseLock(p.lock) }

// check refuses what stands in the place, unless it may be replaced.
func (p *place) check(force bool) error {
	switch {
	case missing(p.path):
		return nil
	case !isFolder(p.path):
		return fmt.Errorf("%s is not a folder; a model folder is written to a folder", p.given)
	case !force && !empty(p.path):
		return fmt.Errorf("%s exists; give --force to replace it or -o for another name", p.given)
	}
	return nil
}

// checkLoss refuses to replace a folder with files that the new one does not have.
func (p *place) checkLoss(f *Folder) error {
	if !isFolder(p.path) {
		return nil
	}
	earlier, err := readRecord(links.Folder{Path: p.path})
	if err != nil {
		return err
	}
	return filepath.WalkDir(p.path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(p.path, name)
		rel = filepath.ToSlash(rel)
		if err == nil && !f.has(rel) && !slices.Contains(earlier.Added, rel) {
			return fmt.Errorf("%s would be lost, because the new folder does not contain it; move it away, or give another name with -o", filepath.Join(p.given, rel))
		}
		return err
	})
}

// replace moves the new folder to its place, for good, or leaves what was there. An existing folder then has a
// hidden name.
func (p *place) replace() error {
	if err := syncFolders(p.stage()); err != nil {
		return err
	}
	back, err := p.move()
	if err != nil {
		return err
	}
	err = disk.SyncFolder(filepath.Dir(p.path))
	if err == nil {
		return nil
	}
	if failed := back(); failed != nil && missing(p.path) {
		return failed
	} else if failed != nil {
		return nil // the new folder stays, and is whole
	}
	return err
}

// move moves the new folder to its place, and says how it comes back.
func (p *place) move() (back func() error, err error) {
	if missing(p.path) {
		return func() error { return os.Rename(p.path, p.stage()) }, os.Rename(p.stage(), p.path)
	}
	exchange := func() error { return disk.Exchange(p.stage(), p.path) }
	if exchange() == nil {
		return exchange, nil
	}
	if err := os.Rename(p.path, p.aside()); err != nil {
		return nil, err
	}
	if err := os.Rename(p.stage(), p.path); err != nil {
		if failed := p.restore(); failed != nil {
			err = failed
		}
		return nil, err
	}
	return func() error {
		if err := os.Rename(p.path, p.stage()); err != nil {
			return err
		}
		return p.restore()
	}, nil
}

// restore moves back the folder that was there.
func (p *place) restore() error {
	if err := os.Rename(p.aside(), p.path); err != nil {
		return fmt.Errorf("%v; what was there has the name %s now, and the next run moves it back", disk.Cause(err), p.aside())
	}
	return nil
}

// removeOld removes the folder that was replaced, under whichever name it is.
func (p *place) removeOld() error {
	if err := errors.Join(os.RemoveAll(p.aside()), os.RemoveAll(p.stage())); err != nil {
		return fmt.Errorf("%s is written, and the folder that it replaced could not be removed: %w; the next run removes it from %s", p.given, disk.Cause(err), filepath.Dir(p.path))
	}
	return nil
}

// syncFolders brings the names in a folder and in those below it to the disk.
func syncFolders(top string) error {
	return filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return disk.SyncFolder(name)
	})
}

// inside reports whether a path is a folder or below it.
func inside(name, folder string) bool {
	home, err := os.Stat(folder)
	if err != nil {
		return false
	}
	name, err = filepath.Abs(name)
	if real, failed := filepath.EvalSymlinks(filepath.Dir(name)); failed == nil {
		name = filepath.Join(real, filepath.Base(name))
	}
	if real, failed := filepath.EvalSymlinks(name); failed == nil {
		name = real
	}
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

// isFolder reports whether a path is a folder, or a link to one.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// missing reports whether nothing is at a path.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func empty(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && len(entries) == 0
}
