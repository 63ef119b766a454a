package onnx

import "strconv"

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
