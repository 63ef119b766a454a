package main

import (
	"errors"
	"runtime"
	"runtime/debug"
)

// errCutShort stands for the fault that reading a mapped file gives when the
// file lost bytes meanwhile.
var errCutShort = errors.New("the model's file became shorter while it was read, so nothing was written; wait until it is complete and start again")

// guard runs f, which reads mapped files, and returns errCutShort where it
// would otherwise end the process with a bus error.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			err = errCutShort
		default:
			panic(p)
		}
	}()
	return f()
}
