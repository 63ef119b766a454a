//go:build !linux

package onnx

import (
	"errors"
	"os"
)

// createNameless would create a file without a name; only Linux has such.
func createNameless(string) *os.File { return nil }

func nameFile(*os.File, string) error { return errors.ErrUnsupported }
