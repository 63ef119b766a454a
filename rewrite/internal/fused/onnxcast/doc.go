// Package onnxcast reads ONNX CastLike as Cast. CastLike takes the element type of a
// second value and nothing else of it; torch.export without its optimizer writes the
// scale of an attention as a constant cast like the query. Read as Cast, what is made of
// a constant is a constant, and what is made of one hidden state does not depend on
// another.
//
// A CastLike of which the graph does not tell the second value's type stays what it is.
package onnxcast
