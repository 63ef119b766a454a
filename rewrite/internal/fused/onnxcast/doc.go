// Package onnxcast reads ONNX CastLike as Cast. CastLike takes the element type of a
// second value and nothing else of it; torch.export without its optimizer writes the
// scale of attention as a constant cast like the query. Read as Cast, what is made of
// a constant is a constant, and what is made of one hidden state does not depend on
// another.
//
// A CastLike is unchanged if the graph does not tell the second value's type.
package onnxcast
