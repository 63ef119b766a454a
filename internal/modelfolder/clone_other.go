//go:build !linux

package modelfolder

import (
	"errors"
	"os"
)

// clone is not known here.
func clone(*os.File, *os.File) error { return errors.ErrUnsupported }
