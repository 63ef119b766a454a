package onnx

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// ValueInfo is the name and type of a value: an input or output of a graph, or
// what is known of a value inside it.
type ValueInfo struct {
	Name string

	// Type is the element type of a tensor. It is Undefined for values that
	// are no dense tensors (sequences, optionals, maps, sparse tensors); their
	// types are kept as they stand in the file.
	Type     DataType
	Shape    []Dim // of a tensor; empty for a scalar
	HasShape bool  // false when not even the rank is known

	src source
}

// Dim is one dimension of a shape: a symbol if Param is set, else a number, or
// UnknownDim.
type Dim struct {
	Value int64  // UnknownDim (or anything below zero) when not known; 0 when Param is set
	Param string // a symbol such as "batch_size"; dimensions of one symbol are equal
}

// UnknownDim is the Value of a dimension that is neither known nor named.
const UnknownDim = -1

// Known reports whether the dimension is a number, which is then d.Value.
func (d Dim) Known() bool { return d.Param == "" && d.Value >= 0 }

// String returns the number, the symbol, or "?".
func (d Dim) String() string {
	switch {
	case d.Param != "":
		return d.Param
	case d.Value < 0:
		return "?"
	}
	return strconv.FormatInt(d.Value, 10)
}

// NewValueInfo returns a tensor value of known rank; no dims make a scalar.
func NewValueInfo(name string, t DataType, dims ...Dim) *ValueInfo {
	return &ValueInfo{Name: name, Type: t, Shape: dims, HasShape: true}
}

// Clone returns a copy that can be changed without changing v.
func (v *ValueInfo) Clone() *ValueInfo {
	c := *v
	c.Shape = append([]Dim(nil), v.Shape...)
	return &c
}

func (v *ValueInfo) origin() source { return v.src }

func (v *ValueInfo) original() view {
	o := &ValueInfo{src: v.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

func (v *ValueInfo) asRead() bool {
	o := v.original().(*ValueInfo)
	return v.Name == o.Name && v.Type == o.Type && v.HasShape == o.HasShape && slices.Equal(v.Shape, o.Shape)
}

func (v *ValueInfo) read(*reader) error {
	p, err := v.proto()
	if err != nil {
		return err
	}
	v.Name = p.GetName()
	tensor := p.GetType().GetTensorType()
	v.Type, v.HasShape = DataType(tensor.GetElemType()), tensor.GetShape() != nil
	for _, d := range tensor.GetShape().GetDim() {
		v.Shape = append(v.Shape, dimOf(d))
	}
	return nil
}

// proto decodes the message that v came from.
func (v *ValueInfo) proto() (*onnxpb.ValueInfoProto, error) {
	p := new(onnxpb.ValueInfoProto)
	err := v.src.decode(p, valueInfoSmall, func(record) error { return nil })
	return p, err
}

func dimOf(p *onnxpb.TensorShapeProto_Dimension) Dim {
	switch value := p.GetValue().(type) {
	case *onnxpb.TensorShapeProto_Dimension_DimValue:
		return Dim{Value: value.DimValue}
	case *onnxpb.TensorShapeProto_Dimension_DimParam:
		// A dimension that is named by digits has that size: transformers' exporter writes sizes so that torch does
		// not export as numbers.
		if n, err := strconv.ParseUint(value.DimParam, 10, 31); err == nil {
			return Dim{Value: int64(n)}
		}
		if value.DimParam != "" {
			return Dim{Param: value.DimParam}
		}
	}
	return Dim{Value: UnknownDim}
}

func (v *ValueInfo) fields() []field {
	// What the view does not show of the type, such as denotations, stays as
	// it was.
	p, err := v.proto()
	if err != nil {
		p = new(onnxpb.ValueInfoProto)
	}
	p.Name = text(v.Name)
	if v.Type != Undefined || v.HasShape {
		v.setType(p)
	}
	return smallFields(p)
}

func (v *ValueInfo) setType(p *onnxpb.ValueInfoProto) {
	if p.Type == nil {
		p.Type = new(onnxpb.TypeProto)
	}
	tensor := p.Type.GetTensorType()
	if tensor == nil {
		tensor = new(onnxpb.TypeProto_Tensor)
		p.Type.Value = &onnxpb.TypeProto_TensorType{TensorType: tensor}
	}
	tensor.ElemType = proto.Int32(int32(v.Type))
	if !v.HasShape {
		tensor.Shape = nil
		return
	}
	if tensor.Shape == nil {
		tensor.Shape = new(onnxpb.TensorShapeProto)
	}
	dims := tensor.Shape.Dim
	for len(dims) < len(v.Shape) {
		dims = append(dims, new(onnxpb.TensorShapeProto_Dimension))
	}
	tensor.Shape.Dim = dims[:len(v.Shape)]
	for i, d := range v.Shape {
		if dimOf(dims[i]) == d {
			continue
		}
		switch {
		case d.Param != "":
			dims[i].Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d.Param}
		case d.Known():
			dims[i].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d.Value}
		default:
			dims[i].Value = nil
		}
	}
}

// Other returns what the file says of the type of a value that is no dense tensor, as ONNX's binary form;
// nil of a tensor and where nothing is said.
func (v *ValueInfo) Other() []byte {
	p, err := v.proto()
	if err != nil || v.Type != Undefined || p.GetType().GetTensorType() != nil {
		return nil
	}
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(p.GetType()) // it was read, so it can be written
	return b
}
