//go:build !unix

package offheap

// Make returns memory of zeros, here on the heap.
func Make(size int) ([]byte, error) { return make([]byte, size), nil }

// Free leaves the memory to the collector.
func Free([]byte) error { return nil }
