// Package ir holds what reading and writing ONNX nodes takes: it knows single
// nodes, constants, element types and lists of nodes, but no attention.
//
// For reading: Standard asks whether a node is a standard op of some name, Uses
// yields the values that a node reads (also those that its sub-graphs capture),
// ConstantValue gives the tensor that a Constant node makes. For writing: a
// Builder collects new nodes and constants, names them under one prefix and puts
// them into a graph; every package that writes nodes uses it. Order then restores
// the topological order and Sweep removes what no one reads any more. Precision
// and Round describe the floating-point types, HashTensor and HashAttributes tell
// whether two nodes do the same.
//
// Errors are rare here: Order refuses a graph in which a node depends on its own
// output. Constants that are no tensors of numbers give nil.
//
// It stands beside package dim, below package graph. Start with Standard
// (nodes.go), Uses (uses.go) and Builder (builder.go).
package ir
