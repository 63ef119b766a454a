package onnx

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// external says where contents lie outside the model's file.
type external struct {
	location string // path relative to the model's folder, with slashes
	offset   int64
	length   int64 // 0 when it is not told
}

// External tells where the contents lie if they are outside the model's file:
// in the file location, a path relative to the model's folder, from byte
// offset on. length is 0 if the model does not say it. The file may be
// missing.
func (t *Tensor) External() (location string, offset, length int64, ok bool) {
	if t.external == nil {
		return "", 0, 0, false
	}
	return t.external.location, t.external.offset, t.external.length, true
}

// externalOf reads the entries of external_data.
func externalOf(entries []*onnxpb.StringStringEntryProto) (*external, error) {
	e := new(external)
	for _, p := range entries {
		var err error
		switch p.GetKey() {
		case "location":
			e.location = p.GetValue()
		case "offset":
			e.offset, err = sizeOf(p)
		case "length":
			e.length, err = sizeOf(p)
		}
		if err != nil {
			return nil, err
		}
	}
	if e.location == "" {
		return nil, errors.New("external data without a location")
	}
	return e, nil
}

func sizeOf(p *onnxpb.StringStringEntryProto) (int64, error) {
	n, err := strconv.ParseInt(p.GetValue(), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("the %s of external data is %q", p.GetKey(), short.Name(p.GetValue()))
	}
	return n, nil
}

// bytes returns the size bytes that e points to, from the folder f.
func (e *external) bytes(f *folder, size int64) ([]byte, error) {
	data, err := f.data(e.location)
	if err != nil {
		return nil, err
	}
	if err := e.fits(size, int64(len(data))); err != nil {
		return nil, err
	}
	return data[e.offset : e.offset+size : e.offset+size], nil
}

// fits checks that size bytes are what e points to in a file of have bytes.
func (e *external) fits(size, have int64) error {
	if e.length != 0 && e.length != size {
		return fmt.Errorf("%w: the external data has %d bytes, but the tensor needs %d", ErrFormat, e.length, size)
	}
	if e.offset > have || size > have-e.offset { // a sum could exceed 63 bits
		return fmt.Errorf("external data %q has %d bytes, too few for %d from byte %d on", short.Name(e.location), have, size, e.offset)
	}
	return nil
}
