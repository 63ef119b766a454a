//go:build unix

package engine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// LimitMemory bounds what this process may add to its address space, so that a
// graph that asks for terabytes gets an error and the machine keeps its memory.
// A lower limit that the process has already, as of ulimit -v, stays.
func LimitMemory(bytes uint64) error {
	now := unix.Rlimit{}
	if err := unix.Getrlimit(unix.RLIMIT_AS, &now); err != nil {
		return err
	}
	bytes = min(bytes+addressSpace(), now.Cur)
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: bytes, Max: bytes})
}

// addressSpace returns what the process has already, most of it reserved by Go
// and never used; 2 GiB where the system does not tell.
func addressSpace() uint64 {
	var pages uint64
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(text), &pages)
	}
	if err != nil {
		return 2 << 30
	}
	return pages * uint64(os.Getpagesize())
}
