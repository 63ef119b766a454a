package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// SaveOptions says how to save.
type SaveOptions struct {
	// Force allows files that are in the way to be replaced, though never the
	// files that the model was opened from, nor what is no regular file.
	Force bool

	// Link hard-links external data into another folder, where that is possible,
	// in place of a copy. It takes no space, and a change to one file changes both;
	// Python's onnx reads neither model as long as the link is there.
	Link bool

	// Placed, if set, is called after the save with each file of external data
	// that was put beside the model, or stands there as a link already.
	Placed func(PlacedFile)

	// Progress, if set, is called now and then with the bytes written so far
	// and the bytes to write. An error from it ends the save, which returns it.
	Progress func(written, total int64) error
}

// Placement says how a file was brought to another folder.
type Placement string

const (
	Copied Placement = "copied"
	Cloned Placement = "cloned" // a copy that shares its blocks on disk until one is changed
	Linked Placement = "linked" // the same file: a change to one changes both
)

// PlacedFile is a file of external data beside a model that was saved.
type PlacedFile struct {
	Path  string    `json:"path"`
	How   Placement `json:"how"`
	Bytes int64     `json:"bytes"`
}

// Save writes the model to a file. External data stays where it is if the
// file's folder is the model's own; otherwise it is copied to the same place
// relative to the new file, without its bytes where the file system can. A link that
// stands there already stays, unless Force asks for a copy.
//
// The file appears at once and complete: until then the data stands in
// temporary files. A save that fails or is interrupted leaves what was there.
// The error wraps fs.ErrExist if a file is in the way and Force is not set,
// ErrRefused if the path is one of the model's own files or not a regular file,
// ErrTooLarge if the model does not fit its format, and fs.ErrNotExist if
// external data that must be placed is missing.
func (m *Model) Save(path string, opts SaveOptions) error {
	if err := m.save(path, opts); err != nil {
		return fmt.Errorf("saving %s: %w", path, err)
	}
	return nil
}

func (m *Model) save(path string, opts SaveOptions) (err error) {
	content, _ := encode(m)
	if content.size > maxMessage {
		return ErrTooLarge
	}
	if err := m.checkTarget(path, opts.Force); err != nil {
		return err
	}
	data, err := m.dataToPlace(path)
	if err != nil {
		return err
	}
	clearUp(path)
	for _, d := range data {
		clearUp(filepath.Join(filepath.Dir(path), filepath.FromSlash(d.location)))
	}
	progress := &meter{report: opts.Progress, total: content.size}
	for _, d := range data {
		progress.total += d.size
	}
	var ready []*staged
	var placed []PlacedFile
	var stay []standing
	defer func() {
		for _, s := range ready {
			s.discard()
		}
	}()
	for _, d := range data {
		target := filepath.Join(filepath.Dir(path), filepath.FromSlash(d.location))
		there, _ := os.Stat(target) // before it is compared
		s, how, err := d.stage(filepath.Dir(path), opts, progress)
		if err != nil {
			return err
		}
		if s != nil {
			ready = append(ready, s)
		} else {
			stay = append(stay, standing{target, there})
		}
		if how != "" {
			placed = append(placed, PlacedFile{target, how, d.size})
		}
	}
	s, err := stageContent(path, content, opts.Force, progress)
	if err != nil {
		return err
	}
	ready = append(ready, s) // the model last: once it is there, its data is
	if err := finishAll(ready, progress); err != nil {
		return err
	}
	unlock, err := lockFolder(filepath.Dir(path), progress) // of two saves, one moves all of its files first
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.checkSource(); err != nil { // it was read while it was written
		return err
	}
	for _, s := range stay {
		if err := s.check(); err != nil {
			return err
		}
	}
	if err := placeAll(ready); err != nil {
		return err
	}
	if opts.Placed != nil {
		for _, file := range placed {
			opts.Placed(file)
		}
	}
	return nil
}

// stageContent writes a model to a temporary file.
func stageContent(path string, content chunks, replace bool, progress *meter) (*staged, error) {
	s, err := createStaged(path, replace)
	if err != nil {
		return nil, err
	}
	if err := content.writeTo(s.file, progress); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// checkTarget refuses to overwrite what must not be.
func (m *Model) checkTarget(path string, force bool) error {
	link, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m.checkSource()
	}
	if err != nil {
		return err
	}
	if link.IsDir() {
		return errors.New("it is a folder; give the name of a file")
	}
	// A broken link has no target that could be an original.
	if target, err := os.Stat(path); err == nil && m.owns(target) {
		return fmt.Errorf("%w: the model was opened from this file, and originals are never changed; choose another name", ErrRefused)
	}
	if err := checkReplaceable(path); err != nil {
		return err
	}
	if !force {
		return fmt.Errorf("%w; choose another name or force it to be replaced", fs.ErrExist)
	}
	return m.checkSource()
}

// owns reports whether a file is one that the model was opened from.
func (m *Model) owns(info fs.FileInfo) bool {
	if m.file != nil && os.SameFile(m.file.info, info) {
		return true
	}
	return m.folder != nil && m.folder.holds(info)
}
