//go:build !unix

package onnx

import (
	"io"
	"os"
)

// mapBytes reads a file: mapping is only written for unix systems.
func mapBytes(file *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(file, data)
	return data, err
}

func unmapBytes([]byte) error { return nil }

func forgetBytes([]byte) {}
