//go:build unix

package offheap

import (
	"fmt"
	"syscall"
)

// Make returns memory of zeros. It takes pages of the system when they are first written.
func Make(size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%d MB of memory: %w", size>>20, err)
	}
	return memory, nil
}

// Free gives memory of Make back. Nothing may use it any more.
func Free(memory []byte) error {
	if memory == nil {
		return nil
	}
	return syscall.Munmap(memory)
}
