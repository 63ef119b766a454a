//go:build unix

package engine

import "golang.org/x/sys/unix"

// limitMemory bounds this process's address space, so that a graph that asks
// for terabytes gets an error and the machine keeps its memory.
func limitMemory(bytes uint64) error {
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: bytes, Max: bytes})
}
