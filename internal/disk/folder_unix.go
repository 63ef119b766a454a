//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

// SyncFolder makes names that appeared in a folder survive a crash of the machine.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// LockFolder locks a folder until unlock is called or the process ends. The error is ErrLocked where another
// process or goroutine has the lock. Nothing is locked on file systems without locks.
func LockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(ErrLocked, f.Close())
	}
	return func() { f.Close() }, nil
}

// CanHold says whether Hold does something. Elsewhere a file must be closed before it is renamed.
const CanHold = true

// Hold marks a file as in use until it is closed or the process ends. Nothing is marked on file systems without locks.
func Hold(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_SH) }

// RemoveAbandoned removes a file that no process holds. It stays where that cannot be told.
func RemoveAbandoned(path string) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = os.Remove(path)
	}
}
