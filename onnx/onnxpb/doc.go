// Package onnxpb is the schema of ONNX's binary form (onnx.proto) and the Go
// code generated from it. Package onnx decodes and encodes the small messages
// of a model with it; large ones, above all tensors, it never passes through
// here, because that would copy them.
package onnxpb

//go:generate go run ../../cmd/dev/genonnx onnx.proto
