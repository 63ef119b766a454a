// Package carry holds the op library that is built into a program. Package customop/bundled puts it
// here, and customop takes it from here; it stands apart so that programs without one do not
// depend on the library's bytes.
package carry

import "sync/atomic"

var library atomic.Pointer[[]byte]

// Set says which library is built into the program. The bytes must not be changed; nil is none.
func Set(bytes []byte) {
	if bytes == nil {
		library.Store(nil)
		return
	}
	library.Store(&bytes)
}

// Library returns the library that is built into the program, nil where there is none.
func Library() []byte {
	if p := library.Load(); p != nil {
		return *p
	}
	return nil
}
