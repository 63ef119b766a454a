package onnx

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// SparseTensor is a constant given by its non-zero elements.
type SparseTensor struct {
	Values  *Tensor // the non-zero elements; its name is the sparse tensor's
	Indices *Tensor // int64: positions [n] or coordinates [n, rank]
	Dims    []int64 // of the dense tensor

	src source
}

// Name returns the name of the constant.
func (t *SparseTensor) Name() string {
	if t.Values == nil {
		return ""
	}
	return t.Values.Name
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

func (t *SparseTensor) origin() source { return t.src }

func (t *SparseTensor) original() view {
	o := &SparseTensor{src: t.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

func (t *SparseTensor) read(r *reader) error {
	var p onnxpb.SparseTensorProto
	err := t.src.decode(&p, sparseSmall, func(rec record) error {
		var of **Tensor
		switch rec.num {
		case sparseValues:
			of = &t.Values
		case sparseIndices:
			of = &t.Indices
		default:
			return nil
		}
		if *of == nil {
			*of = new(Tensor)
		}
		(*of).src = append((*of).src, rec.body)
		return nil
	})
	t.Dims = p.GetDims()
	if err != nil {
		return err
	}
	if len(t.Dims) > maxRank {
		return fmt.Errorf("a sparse tensor has %d dimensions; at most %d are read", len(t.Dims), maxRank)
	}
	if err := r.openTensor(t.Values); err != nil {
		return err
	}
	return r.openTensor(t.Indices)
}

func (r *reader) openTensor(t *Tensor) error {
	if t == nil {
		return nil
	}
	return r.open(t)
}

func (t *SparseTensor) fields() []field {
	out := smallFields(&onnxpb.SparseTensorProto{Dims: t.Dims})
	if t.Values != nil {
		out = append(out, field{num: sparseValues, child: t.Values})
	}
	if t.Indices != nil {
		out = append(out, field{num: sparseIndices, child: t.Indices})
	}
	return out
}
