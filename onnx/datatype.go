package onnx

import "strconv"

// DataType is the element type of a tensor, numbered as in ONNX's
// TensorProto.DataType.
type DataType int32

// The element types of ONNX.
const (
	Undefined      DataType = 0
	Float          DataType = 1 // IEEE 754 binary32
	Uint8          DataType = 2
	Int8           DataType = 3
	Uint16         DataType = 4
	Int16          DataType = 5
	Int32          DataType = 6
	Int64          DataType = 7
	String         DataType = 8
	Bool           DataType = 9  // one byte, 0 or 1
	Float16        DataType = 10 // IEEE 754 binary16
	Double         DataType = 11 // IEEE 754 binary64
	Uint32         DataType = 12
	Uint64         DataType = 13
	Complex64      DataType = 14 // two binary32: real, imaginary
	Complex128     DataType = 15 // two binary64: real, imaginary
	BFloat16       DataType = 16 // the upper half of a binary32
	Float8E4M3FN   DataType = 17
	Float8E4M3FNUZ DataType = 18
	Float8E5M2     DataType = 19
	Float8E5M2FNUZ DataType = 20
	Uint4          DataType = 21 // two per byte, the first in the low bits
	Int4           DataType = 22 // two per byte, the first in the low bits
	Float4E2M1     DataType = 23 // two per byte, the first in the low bits
	Float8E8M0     DataType = 24
	Uint2          DataType = 25 // four per byte, the first in the low bits
	Int2           DataType = 26 // four per byte, the first in the low bits
	Float6E2M3     DataType = 27 // four in three bytes, from the low bits on
	Float6E3M2     DataType = 28 // four in three bytes, from the low bits on
)

// dataTypes holds, by number, each type's name in ONNX's type strings and the
// bits that one element takes in raw data; 0 where there is no such form.
var dataTypes = [...]struct {
	name string
	bits int
}{
	Undefined:      {"undefined", 0},
	Float:          {"float", 32},
	Uint8:          {"uint8", 8},
	Int8:           {"int8", 8},
	Uint16:         {"uint16", 16},
	Int16:          {"int16", 16},
	Int32:          {"int32", 32},
	Int64:          {"int64", 64},
	String:         {"string", 0},
	Bool:           {"bool", 8},
	Float16:        {"float16", 16},
	Double:         {"double", 64},
	Uint32:         {"uint32", 32},
	Uint64:         {"uint64", 64},
	Complex64:      {"complex64", 64},
	Complex128:     {"complex128", 128},
	BFloat16:       {"bfloat16", 16},
	Float8E4M3FN:   {"float8e4m3fn", 8},
	Float8E4M3FNUZ: {"float8e4m3fnuz", 8},
	Float8E5M2:     {"float8e5m2", 8},
	Float8E5M2FNUZ: {"float8e5m2fnuz", 8},
	Uint4:          {"uint4", 4},
	Int4:           {"int4", 4},
	Float4E2M1:     {"float4e2m1", 4},
	Float8E8M0:     {"float8e8m0", 8},
	Uint2:          {"uint2", 2},
	Int2:           {"int2", 2},
	Float6E2M3:     {"float6e2m3", 6},
	Float6E3M2:     {"float6e3m2", 6},
}

// String returns the type's name as ONNX's type strings write it, such as
// "float" or "int64".
func (t DataType) String() string {
	if t < 0 || int(t) >= len(dataTypes) {
		return "type " + strconv.Itoa(int(t))
	}
	return dataTypes[t].name
}

// Bits returns how many bits one element takes in raw data, or 0 for strings
// and types without a known raw form.
func (t DataType) Bits() int {
	if t < 0 || int(t) >= len(dataTypes) {
		return 0
	}
	return dataTypes[t].bits
}

// Size returns how many bytes one element takes in raw data, or 0 for strings,
// for elements smaller than a byte and for types without a known raw form.
func (t DataType) Size() int { return t.Bits() / 8 }
