package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/x448/float16"
)

// ggufFile is an open GGUF file, version 3: numbers of its metadata and where
// its tensors lie. Layout: github.com/ggml-org/ggml, docs/gguf.md.
type ggufFile struct {
	data    io.ReaderAt
	numbers map[string]uint64 // integer metadata by key
	tensors []ggufTensor
}

// ggufTensor describes one tensor; columns vary fastest.
type ggufTensor struct {
	name          string
	rows, columns int
	kind          uint32
	offset        int64
}

// Element types that the project's checkpoint uses (ggml.h, enum ggml_type).
const (
	kindF32  = 0
	kindQ4_1 = 3
	kindQ8_0 = 8
)

const blockLength = 32 // elements of a Q4_1 or Q8_0 block

const (
	maxString = 1 << 24 // bytes; the longest in real files are chat templates
	maxCount  = 1 << 24 // tensors, keys or array elements
)

// openGGUF reads the header.
func openGGUF(data io.ReaderAt, size int64) (*ggufFile, error) {
	r := &ggufReader{r: bufio.NewReaderSize(io.NewSectionReader(data, 0, size), 1<<16)}
	if magic := r.bytes(4); string(magic) != "GGUF" {
		return nil, errors.New("not a GGUF file")
	}
	if version := r.uint32(); r.err == nil && version != 3 {
		return nil, fmt.Errorf("GGUF version %d, only 3 is known", version)
	}
	tensorCount, keyCount := r.count(), r.count()
	f := &ggufFile{data: data, numbers: map[string]uint64{}}
	for i := 0; i < keyCount && r.err == nil; i++ {
		key := r.string()
		if n, ok := r.value(r.uint32(), 0); ok {
			f.numbers[key] = n
		}
	}
	for i := 0; i < tensorCount && r.err == nil; i++ {
		f.tensors = append(f.tensors, r.tensor())
	}
	if r.err != nil {
		return nil, fmt.Errorf("GGUF header: %w", r.err)
	}
	alignment := int64(32)
	if n := f.numbers["general.alignment"]; n > 0 && n <= 1<<16 {
		alignment = int64(n)
	}
	start := (r.read + alignment - 1) / alignment * alignment
	for i := range f.tensors {
		t := &f.tensors[i]
		t.offset += start
		if bytes, err := t.size(); err == nil && (t.offset < start || t.offset > size || bytes > size-t.offset) {
			return nil, fmt.Errorf("GGUF tensor %s reaches beyond the end of the file", t.name)
		}
	}
	return f, nil
}

// size is the tensor's length in bytes.
func (t ggufTensor) size() (int64, error) {
	elements := int64(t.rows) * int64(t.columns)
	switch t.kind {
	case kindF32:
		return elements * 4, nil
	case kindQ4_1, kindQ8_0:
		if t.columns%blockLength != 0 {
			return 0, fmt.Errorf("GGUF tensor %s: %d columns do not fill blocks of %d", t.name, t.columns, blockLength)
		}
		return elements / blockLength * blockBytes(t.kind), nil
	}
	return 0, fmt.Errorf("GGUF tensor %s has element type %d; only F32, Q4_1 and Q8_0 are known", t.name, t.kind)
}

func blockBytes(kind uint32) int64 {
	if kind == kindQ4_1 {
		return 2 + 2 + blockLength/2 // scale, minimum, 4-bit numbers
	}
	return 2 + blockLength // scale, 8-bit numbers
}

// float32s reads a tensor, rows × columns.
func (f *ggufFile) float32s(t ggufTensor) ([]float32, error) {
	size, err := t.size()
	if err != nil {
		return nil, err
	}
	raw := make([]byte, size)
	if _, err := f.data.ReadAt(raw, t.offset); err != nil {
		return nil, fmt.Errorf("GGUF tensor %s: %w", t.name, err)
	}
	out := make([]float32, t.rows*t.columns)
	if t.kind == kindF32 {
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		return out, nil
	}
	step := int(blockBytes(t.kind))
	for at := 0; len(raw) > 0; at, raw = at+blockLength, raw[step:] {
		block := out[at : at+blockLength]
		if t.kind == kindQ4_1 {
			dequantizeQ4_1(block, raw)
		} else {
			dequantizeQ8_0(block, raw)
		}
	}
	return out, nil
}

func half(raw []byte) float32 {
	return float16.Frombits(binary.LittleEndian.Uint16(raw)).Float32()
}

// dequantizeQ4_1: scale·n + minimum, n the low halves of the bytes and then
// the high ones. The product is rounded before the sum, as NumPy does it.
func dequantizeQ4_1(out []float32, raw []byte) {
	scale, minimum := half(raw), half(raw[2:])
	for i, b := range raw[4 : 4+blockLength/2] {
		out[i] = float32(scale*float32(b&15)) + minimum
		out[i+blockLength/2] = float32(scale*float32(b>>4)) + minimum
	}
}

// dequantizeQ8_0: scale·n.
func dequantizeQ8_0(out []float32, raw []byte) {
	scale := half(raw)
	for i, b := range raw[2 : 2+blockLength] {
		out[i] = scale * float32(int8(b))
	}
}

// ggufReader reads the header's parts and keeps the first error.
type ggufReader struct {
	r    *bufio.Reader
	read int64
	err  error
}

func (r *ggufReader) bytes(n int) []byte {
	if r.err != nil {
		return nil
	}
	b := make([]byte, n)
	var got int
	got, r.err = io.ReadFull(r.r, b)
	r.read += int64(got)
	if r.err != nil {
		return nil
	}
	return b
}

// uint reads a little-endian number of n ≤ 8 bytes.
func (r *ggufReader) uint(n int) (v uint64) {
	for i, b := range r.bytes(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

func (r *ggufReader) uint32() uint32 { return uint32(r.uint(4)) }

func (r *ggufReader) limited(limit uint64, what string) int {
	n := r.uint(8)
	if r.err == nil && n > limit {
		r.err = fmt.Errorf("%s of %d", what, n)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *ggufReader) count() int     { return r.limited(maxCount, "a count") }
func (r *ggufReader) string() string { return string(r.bytes(r.limited(maxString, "a text"))) }

// value reads a metadata value of the given type; ok if it is an integer.
func (r *ggufReader) value(kind uint32, depth int) (n uint64, ok bool) {
	switch kind {
	case 0, 1, 7: // uint8, int8, bool
		return r.uint(1), true
	case 2, 3: // uint16, int16
		return r.uint(2), true
	case 4, 5: // uint32, int32
		return r.uint(4), true
	case 10, 11: // uint64, int64
		return r.uint(8), true
	case 6: // float32
		r.bytes(4)
	case 12: // float64
		r.bytes(8)
	case 8:
		_ = r.string()
	case 9:
		element, count := r.uint32(), r.count()
		if r.err == nil && depth > 3 {
			r.err = errors.New("arrays in arrays in arrays")
		}
		for i := 0; i < count && r.err == nil; i++ {
			r.value(element, depth+1)
		}
	default:
		if r.err == nil {
			r.err = fmt.Errorf("unknown value type %d", kind)
		}
	}
	return 0, false
}

func (r *ggufReader) tensor() ggufTensor {
	t := ggufTensor{name: r.string(), rows: 1, columns: 1}
	axes := r.uint32()
	if r.err == nil && (axes < 1 || axes > 2) {
		r.err = fmt.Errorf("tensor %s has %d axes, want 1 or 2", t.name, axes)
	}
	if r.err != nil {
		return t
	}
	t.columns = r.limited(1<<30, "an axis")
	if axes == 2 {
		t.rows = r.limited(1<<30, "an axis")
	}
	t.kind = r.uint32()
	t.offset = int64(r.uint(8))
	return t
}
