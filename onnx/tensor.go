package onnx

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// Tensor is a constant: an initializer of a graph or the value of an attribute.
//
// Name, Type and Dims may be changed; they must still fit the contents, which
// cannot be changed; make a new tensor for other contents.
type Tensor struct {
	Name string
	Type DataType
	Dims []int64 // empty for a scalar

	raw      []byte    // raw content, where the tensor has it in that form
	external *external // where the content is, if outside the model's file
	folder   *folder   // that external is relative to; nil if it is not known
	src      source
}

// NewTensor returns a tensor with the elements of raw, in row-major order,
// little-endian. raw is kept, not copied.
func NewTensor(name string, t DataType, dims []int64, raw []byte) *Tensor {
	return &Tensor{Name: name, Type: t, Dims: dims, raw: raw}
}

// Len returns the number of elements, or -1 if the dimensions are not a valid
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

func (t *Tensor) origin() source { return t.src }

func (t *Tensor) original() view {
	o := &Tensor{src: t.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

// maxRank bounds the dimensions of a tensor: ONNX Runtime has crashed on one
// with 100,000.
const maxRank = 64

func (t *Tensor) read(r *reader) error {
	var p onnxpb.TensorProto
	err := t.src.decode(&p, tensorSmall, func(rec record) error {
		if rec.num == tensorRaw {
			t.raw = rec.body
		}
		return nil
	})
	t.Name, t.Type, t.Dims, t.folder = p.GetName(), DataType(p.GetDataType()), p.GetDims(), r.folder
	if err != nil {
		return err
	}
	if len(t.Dims) > maxRank {
		return fmt.Errorf("a tensor has %d dimensions; at most %d are read", len(t.Dims), maxRank)
	}
	if t.Len() < 0 {
		return fmt.Errorf("dimensions %v are not a valid size", t.Dims)
	}
	if p.GetDataLocation() == onnxpb.TensorProto_EXTERNAL {
		if t.external, err = externalOf(p.GetExternalData()); err == nil {
			r.folder.note(t.external.location)
		}
	}
	return err
}

func (t *Tensor) fields() []field {
	p := &onnxpb.TensorProto{Name: text(t.Name), Dims: t.Dims}
	if t.Type != Undefined {
		p.DataType = proto.Int32(int32(t.Type))
	}
	out := smallFields(p)
	// The contents of a tensor from a file pass through as they stand there.
	if t.src == nil {
		out = append(out, field{num: tensorRaw, blob: t.raw})
	}
	return out
}
