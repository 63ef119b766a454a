//go:build unix

package modelfolder

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// takeLock locks a file, which it makes. The system unlocks it when the process ends, however that happens. The
// error is errTaken where another run has the lock.
func takeLock(name string) (*os.File, error) {
	for {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o666)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(errTaken, file.Close())
		}
		if err != nil {
			return file, nil // the file system has no locks, and two runs at once are not seen
		}
		mine, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		there, err := os.Stat(name)
		if err == nil && os.SameFile(mine, there) {
			return file, nil
		}
		if closed := file.Close(); closed != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, closed)
		}
		// The run that had the lock removed the file before it let go: another run may have made a new one.
	}
}

// releaseLock removes the file while it is still locked, so that nobody holds a file that has gone.
func releaseLock(file *os.File) error {
	err := os.Remove(file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, file.Close())
}
