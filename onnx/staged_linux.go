package onnx

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// createNameless creates a file that has no name until nameFile gives it one,
// or returns nil where the file system cannot do that. Errors name it by its later path.
func createNameless(path string) *os.File {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), path)
	if _, err := os.Stat(procPath(file)); err != nil {
		file.Close() // without /proc it could not be named
		return nil
	}
	return file
}

func nameFile(file *os.File, name string) error {
	err := unix.Linkat(unix.AT_FDCWD, procPath(file), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.PathError{Op: "link", Path: name, Err: err}
	}
	return nil
}

func procPath(file *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(file.Fd())) }
