// Package disk has what package os lacks for files that several runs write and that must outlive a crash:
// folders that are synced, exchanged and locked, and whether a file was changed in the meantime.
package disk

import (
	"errors"
	"io/fs"
	"os"
)

// ErrLocked says that another process or goroutine has the lock of a folder.
var ErrLocked = errors.New("the folder is locked")

// Cause is why the system did not do something, without the names of the files, which may be hidden ones.
func Cause(err error) error {
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		return of.Err
	}
	if of := (*os.LinkError)(nil); errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Changed reports whether a file that was read has other contents by now, as far as the system tells: both are
// what it said of the same file. The time of the last write alone does not show it, because programs set that
// time back.
func Changed(before, now fs.FileInfo) bool {
	return before.Size() != now.Size() || !before.ModTime().Equal(now.ModTime()) || touched(before, now)
}
