package onnx

import (
	"slices"
)

// AttributeType says which field of an Attribute holds its value, numbered as
// in ONNX's AttributeProto.AttributeType.
type AttributeType int32

// The types of attributes.
const (
	AttrUndefined     AttributeType = 0
	AttrFloat         AttributeType = 1
	AttrInt           AttributeType = 2
	AttrString        AttributeType = 3
	AttrTensor        AttributeType = 4
	AttrGraph         AttributeType = 5
	AttrFloats        AttributeType = 6
	AttrInts          AttributeType = 7
	AttrStrings       AttributeType = 8
	AttrTensors       AttributeType = 9
	AttrGraphs        AttributeType = 10
	AttrSparseTensor  AttributeType = 11
	AttrSparseTensors AttributeType = 12
	AttrTypeProto     AttributeType = 13 // kept as it stands in the file
	AttrTypeProtos    AttributeType = 14 // kept as it stands in the file
)

// Attribute is a named constant of a node, or the default value of a
// function's attribute. Only the field that Type selects is meaningful.
type Attribute struct {
	Name    string
	RefName string // in a function body: the function's attribute to use instead of a value
	Type    AttributeType

	Float         float32
	Int           int64
	Bytes         []byte // a string; ONNX does not promise UTF-8. A slice of the mapped file: do not write to it
	Tensor        *Tensor
	Graph         *Graph
	SparseTensor  *SparseTensor
	Floats        []float32
	Ints          []int64
	Strings       [][]byte
	Tensors       []*Tensor
	Graphs        []*Graph
	SparseTensors []*SparseTensor

	src source
}

// FloatAttr returns a float attribute.
func FloatAttr(name string, v float32) *Attribute {
	return &Attribute{Name: name, Type: AttrFloat, Float: v}
}

// IntAttr returns an integer attribute.
func IntAttr(name string, v int64) *Attribute {
	return &Attribute{Name: name, Type: AttrInt, Int: v}
}

// StringAttr returns a string attribute.
func StringAttr(name, v string) *Attribute {
	return &Attribute{Name: name, Type: AttrString, Bytes: []byte(v)}
}

// TensorAttr returns a tensor attribute.
func TensorAttr(name string, v *Tensor) *Attribute {
	return &Attribute{Name: name, Type: AttrTensor, Tensor: v}
}

// GraphAttr returns a sub-graph attribute.
func GraphAttr(name string, v *Graph) *Attribute {
	return &Attribute{Name: name, Type: AttrGraph, Graph: v}
}

// FloatsAttr returns an attribute that holds a list of floats.
func FloatsAttr(name string, v ...float32) *Attribute {
	return &Attribute{Name: name, Type: AttrFloats, Floats: v}
}

// IntsAttr returns an attribute that holds a list of integers.
func IntsAttr(name string, v ...int64) *Attribute {
	return &Attribute{Name: name, Type: AttrInts, Ints: v}
}

// StringsAttr returns an attribute that holds a list of strings.
func StringsAttr(name string, v ...string) *Attribute {
	a := &Attribute{Name: name, Type: AttrStrings}
	for _, s := range v {
		a.Strings = append(a.Strings, []byte(s))
	}
	return a
}

// Clone returns a copy that can be changed without changing a. Tensor contents
// are shared, not copied.
func (a *Attribute) Clone() *Attribute {
	c := *a
	c.Tensor, c.Graph, c.SparseTensor = a.Tensor.Clone(), a.Graph.Clone(), a.SparseTensor.Clone()
	c.Floats, c.Ints, c.Strings = slices.Clone(a.Floats), slices.Clone(a.Ints), slices.Clone(a.Strings)
	c.Tensors, c.Graphs, c.SparseTensors = cloneAll(a.Tensors), cloneAll(a.Graphs), cloneAll(a.SparseTensors)
	return &c
}

// cloneAll clones every element of a list.
func cloneAll[T interface{ Clone() T }](list []T) []T {
	var out []T
	for _, v := range list {
		out = append(out, v.Clone())
	}
	return out
}
