//go:build unix

package onnx

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapBytes maps a file of a size above zero for reading.
func mapBytes(file *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
}

func unmapBytes(data []byte) error { return unix.Munmap(data) }
