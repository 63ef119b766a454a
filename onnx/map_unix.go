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

// forgetBytes gives back the memory of whole pages of a mapped file.
func forgetBytes(pages []byte) { _ = unix.Madvise(pages, unix.MADV_DONTNEED) } // what fails costs memory only
