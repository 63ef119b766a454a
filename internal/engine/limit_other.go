//go:build !unix

package engine

// LimitMemory does nothing where the system has no such limit.
func LimitMemory(uint64) error { return nil }
