package onnx

import (
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// WriteContents writes the contents of a tensor of the model to w, in the form of
// Tensor.Bytes, a piece at a time: whatever their size they take little memory, for
// external data is read and not mapped, and of the model's own file no more than a
// piece stays in memory. It fails where Tensor.Bytes does, and with an error of w.
func (m *Model) WriteContents(t *Tensor, w io.Writer) error {
	if err := m.writeContents(t, w); err != nil {
		return fmt.Errorf("tensor %q: %w", short.Name(t.Name), err)
	}
	return nil
}

func (m *Model) writeContents(t *Tensor, w io.Writer) error {
	if t.external == nil {
		data, err := t.contents()
		for err == nil && len(data) > 0 {
			part := data[:min(len(data), step)]
			data = data[len(part):]
			_, err = w.Write(part)
			m.forget(part)
		}
		return err
	}
	file, size, err := t.openExternal()
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(file, t.external.offset, size), make([]byte, 1<<20))
	return err
}

// openExternal opens the file with the contents of a tensor, which is long enough.
func (t *Tensor) openExternal() (file *os.File, size int64, err error) {
	if size = t.ByteLen(); size < 0 {
		return nil, 0, fmt.Errorf("%s elements with dimensions %v cannot be stored as raw bytes", t.Type, t.Dims)
	}
	if t.folder == nil {
		return nil, 0, errNoFolder(t.external.location)
	}
	if file, err = t.folder.open(t.external.location); err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil {
		err = t.external.fits(size, info.Size())
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, size, nil
}

// SharesContents says whether the contents of both tensors are the same bytes of one
// file of external data, which may have several names (hard links). Nothing is read.
func (t *Tensor) SharesContents(u *Tensor) bool {
	if t.external == nil || u.external == nil || t.external.offset != u.external.offset || t.ByteLen() != u.ByteLen() {
		return false
	}
	var infos [2]os.FileInfo
	for i, x := range []*Tensor{t, u} {
		file, _, err := x.openExternal()
		if err != nil {
			return false
		}
		infos[i], err = file.Stat()
		file.Close()
		if err != nil {
			return false
		}
	}
	return os.SameFile(infos[0], infos[1])
}

// forget lets the system take back the memory of a part of the mapped file. What is
// read there later comes from the file again.
func (m *Model) forget(part []byte) {
	if m.file == nil || len(m.file.data) == 0 || len(part) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(&part[0])) - uintptr(unsafe.Pointer(&m.file.data[0]))
	if size := uintptr(len(m.file.data)); start < size && uintptr(len(part)) <= size-start {
		page := uintptr(os.Getpagesize())
		first, end := (start+page-1)/page*page, (start+uintptr(len(part)))/page*page
		if first < end {
			forgetBytes(m.file.data[first:end])
		}
	}
}
