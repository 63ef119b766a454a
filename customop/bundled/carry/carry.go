// Package carry holds the op library that a program carries inside. Package customop/bundled puts it
// here, and customop takes it from here; it stands apart so that programs which carry none do not
// depend on the library's bytes.
package carry

import "sync/atomic"

var library atomic.Pointer[[]byte]

// Set says which library the program carries. The bytes must not be changed; nil is none.
func Set(bytes []byte) {
	if bytes == nil {
		library.Store(nil)
		return
	}
	library.Store(&bytes)
}

// Library returns the library that the program carries, nil where it carries none.
func Library() []byte {
	if p := library.Load(); p != nil {
		return *p
	}
	return nil
}
