//go:build unix

package onnx

import "os"

// syncFolder makes a rename in a folder survive a crash of the machine.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
