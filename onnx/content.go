package onnx

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Bytes returns the contents in their raw form: elements in row-major order,
// little-endian, those smaller than a byte packed from the low bits on. It is
// a slice of the mapped file wherever the file has that form: do not write to
// it, and do not use it after the model is closed.
//
// It fails for strings, for contents that do not fit the dimensions, and for
// external data that is missing (the error wraps fs.ErrNotExist), too short or
// refused (ErrRefused).
func (t *Tensor) Bytes() ([]byte, error) {
	b, err := t.contents()
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", short.Name(t.Name), err)
	}
	return b, nil
}

func (t *Tensor) contents() ([]byte, error) {
	size := t.ByteLen()
	if size < 0 {
		return nil, fmt.Errorf("%s elements with dimensions %v cannot be stored as raw bytes", t.Type, t.Dims)
	}
	b, err := t.raw, error(nil)
	switch {
	case t.external != nil:
		b, err = t.external.bytes(t.folder, size)
	case b == nil:
		b, err = t.typed()
	}
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != size {
		return nil, wrongSize(t, len(b))
	}
	return b, nil
}

// typed converts contents given in one of the typed lists, such as float_data.
func (t *Tensor) typed() ([]byte, error) {
	switch t.Type {
	case Float, Complex64:
		return t.fixed(tensorFloats, protowire.Fixed32Type)
	case Double, Complex128:
		return t.fixed(tensorDoubles, protowire.Fixed64Type)
	case Int64:
		return t.varints(tensorInt64s, 8)
	case Uint32:
		return t.varints(tensorUint64s, 4)
	case Uint64:
		return t.varints(tensorUint64s, 8)
	case Float6E2M3, Float6E3M2:
		if t.Len() > 0 {
			return nil, fmt.Errorf("%s elements are read only from raw bytes", t.Type)
		}
	}
	// Everything else stands in int32_data: one element, or for elements
	// smaller than a byte one byte of packed ones, in each.
	return t.varints(tensorInt32s, max(t.Type.Size(), 1))
}

// fixed joins the elements of a list of floats or doubles, whose packed form
// is the raw form.
func (t *Tensor) fixed(num protowire.Number, typ protowire.Type) ([]byte, error) {
	var out []byte
	err := t.src.each(func(r record) error {
		switch {
		case r.num != num || (r.typ != typ && r.typ != protowire.BytesType):
		case out == nil:
			out = r.body
		default: // in several pieces; r.body has no spare capacity, so this copies
			out = append(out, r.body...)
		}
		return nil
	})
	return out, err
}

// varints converts the elements of a list of varints to little-endian numbers
// of width bytes.
func (t *Tensor) varints(num protowire.Number, width int) ([]byte, error) {
	var out []byte
	var element [8]byte
	add := func(b []byte) error {
		for len(b) > 0 {
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return fmt.Errorf("%w: %w", ErrFormat, encodingError(n))
			}
			b = b[n:]
			binary.LittleEndian.PutUint64(element[:], v)
			out = append(out, element[:width]...)
		}
		return nil
	}
	err := t.src.each(func(r record) error {
		if r.num == num && (r.typ == protowire.VarintType || r.typ == protowire.BytesType) {
			return add(r.body)
		}
		return nil
	})
	return out, err
}

// Strings returns the elements of a tensor of strings. ONNX does not promise
// UTF-8.
func (t *Tensor) Strings() ([][]byte, error) {
	if t.Type != String {
		return nil, fmt.Errorf("tensor %q: holds %s, not strings", short.Name(t.Name), t.Type)
	}
	var out [][]byte
	err := t.src.each(func(r record) error {
		if r.num == tensorStrings && r.typ == protowire.BytesType {
			out = append(out, r.body)
		}
		return nil
	})
	if err == nil && int64(len(out)) != t.Len() {
		err = fmt.Errorf("tensor %q: %w: %d strings for dimensions %v", short.Name(t.Name), ErrFormat, len(out), t.Dims)
	}
	return out, err
}
