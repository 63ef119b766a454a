//go:build !unix

package modelfolder

import (
	"errors"
	"io/fs"
	"os"
)

// takeLock makes a file that no other run can remove, because it is open here. The error is errTaken where
// another run has it.
func takeLock(name string) (*os.File, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil, errTaken
	}
	return file, err
}

func releaseLock(file *os.File) error { return errors.Join(file.Close(), os.Remove(file.Name())) }
