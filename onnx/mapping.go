package onnx

import (
	"fmt"
	"io/fs"
	"math"
	"os"
)

// mapping is a file in memory.
type mapping struct {
	data []byte
	info fs.FileInfo // when it was mapped
}

// mapFile maps an open file, which may be closed afterwards.
func mapFile(file *os.File) (*mapping, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	m := &mapping{info: info}
	size := info.Size()
	if size == 0 {
		return m, nil // an empty file cannot be mapped
	}
	if size > math.MaxInt {
		return nil, fmt.Errorf("%d bytes do not fit this machine's address space", size)
	}
	m.data, err = mapBytes(file, int(size))
	return m, err
}

func (m *mapping) close() error {
	data := m.data
	m.data = nil
	if data == nil {
		return nil
	}
	return unmapBytes(data)
}
