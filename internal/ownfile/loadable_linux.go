package ownfile

import (
	"errors"
	"os"
	"syscall"
)

// Loadable says why the dynamic loader could not run code from a file, nil if it could. It asks for what the loader asks for,
// because a mount's flags are not all that forbids it.
func Loadable(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	page, err := syscall.Mmap(int(file.Fd()), 0, 1, syscall.PROT_READ|syscall.PROT_EXEC, syscall.MAP_PRIVATE)
	if err != nil {
		return errors.New("no code may run from there (mounted noexec)")
	}
	return syscall.Munmap(page)
}
