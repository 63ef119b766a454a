package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/disk"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// checkSource makes sure that the mapped files are still those that were read.
// A file put in the model's place is no harm: the mapping holds on to the old one. External data
// is looked for under its name, by this save or by who reads the new model.
func (m *Model) checkSource() error {
	if m.file == nil {
		return nil
	}
	now, err := os.Stat(m.Path)
	if err == nil && os.SameFile(now, m.file.info) && disk.Changed(m.file.info, now) {
		return fmt.Errorf("%s was changed after it was opened; open it again", m.Path)
	}
	if m.folder == nil {
		return nil
	}
	return m.folder.check()
}

// check makes sure that the external data that was read is still there.
func (f *folder) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for location, read := range f.maps {
		file, err := f.open(location)
		if err != nil {
			return err
		}
		now, err := file.Stat()
		file.Close()
		if err != nil {
			return err
		}
		if !os.SameFile(now, read.info) || disk.Changed(read.info, now) {
			return fmt.Errorf("external data %q was changed after it was read; open %s again", short.Name(location), f.model)
		}
	}
	return nil
}

// standing is a file of external data that stands beside the new model already.
type standing struct {
	path string
	info fs.FileInfo // when it was compared
}

func (s standing) check() error {
	now, err := os.Stat(s.path)
	if err != nil || s.info == nil || !os.SameFile(now, s.info) || disk.Changed(s.info, now) {
		return fmt.Errorf("%s was changed by another program in the meantime; save again", s.path)
	}
	return nil
}

// lockFolder waits until no other save moves files into a folder.
func lockFolder(dir string, progress *meter) (unlock func(), err error) {
	for {
		unlock, err := disk.LockFolder(dir)
		if !errors.Is(err, disk.ErrLocked) {
			return unlock, err
		}
		if err := progress.add(0); err != nil {
			return nil, err
		}
		time.Sleep(time.Millisecond)
	}
}
