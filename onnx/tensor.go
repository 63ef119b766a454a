package onnx

import (
	"errors"
	"math"
	"slices"
)

// Tensor is a constant: an initializer of a graph or the value of an attribute.
type Tensor struct {
	Name string
	Type DataType
	Dims []int64 // empty for a scalar

	raw      []byte // raw little-endian content, where the tensor has it
	src      source
}

// SparseTensor is a constant given by its non-zero elements.
type SparseTensor struct {
	Values  *Tensor // the non-zero elements; its name is the sparse tensor's
	Indices *Tensor // int64: positions [n] or coordinates [n, rank]
	Dims    []int64 // of the dense tensor

	src source
}

// NewTensor returns a tensor whose elements stand in raw in row-major order,
// little-endian. raw is kept, not copied.
func NewTensor(name string, t DataType, dims []int64, raw []byte) *Tensor {
	return &Tensor{Name: name, Type: t, Dims: dims, raw: raw}
}

// Len returns the number of elements, or -1 if the dimensions make no valid
// size (one is negative, or the product exceeds 63 bits).
func (t *Tensor) Len() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		if d < 0 || (d > 0 && n > math.MaxInt64/d) {
			return -1
		}
		n *= d
	}
	return n
}

// ByteLen returns the size of the raw content in bytes, or -1 if the element
// type has no raw form or the size is not valid.
func (t *Tensor) ByteLen() int64 {
	n, bits := t.Len(), int64(t.Type.Bits())
	if n < 0 || bits == 0 || n > (math.MaxInt64-7)/bits {
		return -1
	}
	return (n*bits + 7) / 8
}

// Bytes returns the raw little-endian content.
func (t *Tensor) Bytes() ([]byte, error) {
	if t.raw != nil {
		return t.raw, nil
	}
	return nil, errors.ErrUnsupported
}

// External tells where the content lies when it is outside the model's file.
func (t *Tensor) External() (location string, offset, length int64, ok bool) {
	return "", 0, 0, false
}

// Floats returns the elements of a tensor of any real type as float32.
func (t *Tensor) Floats() ([]float32, error) { return nil, errors.ErrUnsupported }

// Float64s returns the elements of a tensor of any real type as float64.
func (t *Tensor) Float64s() ([]float64, error) { return nil, errors.ErrUnsupported }

// Int64s returns the elements of a tensor of integer or bool type as int64.
func (t *Tensor) Int64s() ([]int64, error) { return nil, errors.ErrUnsupported }

// Strings returns the elements of a tensor of strings.
func (t *Tensor) Strings() ([][]byte, error) { return nil, errors.ErrUnsupported }

// Clone returns a copy that can be changed without changing t; nil for nil.
// The content is shared, not copied.
func (t *Tensor) Clone() *Tensor {
	if t == nil {
		return nil
	}
	c := *t
	c.Dims = slices.Clone(t.Dims)
	return &c
}

// Clone returns a copy that can be changed without changing t; nil for nil.
func (t *SparseTensor) Clone() *SparseTensor {
	if t == nil {
		return nil
	}
	c := *t
	c.Values, c.Indices, c.Dims = t.Values.Clone(), t.Indices.Clone(), slices.Clone(t.Dims)
	return &c
}
