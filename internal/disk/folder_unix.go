//go:build unix

package disk

import (
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

// LockFolder waits until no other process or goroutine has the lock of a folder. The system gives the lock
// back when the process ends. Nothing is locked on file systems without locks.
func LockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return func() { f.Close() }, nil
		}
	}
}
