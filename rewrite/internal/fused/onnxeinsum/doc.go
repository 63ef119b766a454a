// Package onnxeinsum reads ONNX Einsum, where it is a product of matrices, as
// Transpose and MatMul: some exporters write scores as
//
//	Einsum("bhid,bhjd->bhij", query, key)
//
// and attention as Einsum("bhij,bhjd->bhid", probabilities, value). Each
// operand has one dimension that is summed over, one of its own, and the rest in
// common; any order will do. An Einsum that sums over nothing, over more, or of
// another number of operands is unchanged. One that ONNX does not know (another
// attribute, operands that its equation does not name) is refused.
package onnxeinsum
