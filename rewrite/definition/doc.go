// Package definition writes the fallback: the op RotaryAttention in standard ONNX operators,
// as functions in the model (model-local functions, FunctionProto).
//
// A runtime with the op library computes the op there and ignores the function. A runtime
// without it inlines the function. So one file runs fast with the library, and still runs
// without it.
//
//	written, err := definition.Write(m)   // adds the functions of m's ops
//	definition.Remove(m)                  // removes them
//
// A function's body computes exactly what customop.RotaryAttentionSpec says, in float32 for
// every element type. It is the second implementation of the specification, and the rules
// for kernels apply to it too.
//
// One body must be right for all nodes of its name, because older runtimes distinguish
// functions by nothing else. So numbers are read from the node (attributes by reference), and
// whatever decides the structure of the body (form.go) splits the nodes into groups. The
// first group has the op's name, the others have numbered names (customop.OpTypes). A model
// with more groups than names gets no functions, nor does one for which no body can be
// written; the error says why.
//
// A kernel checks some things that a body cannot: that positions and document ids are in
// range, that position − index is one number for the tokens of a row, that cached tokens fit
// into a buffer's capacity (the run then ends with an error of ScatterND), and that memory of
// past and present does not overlap. Hidden keys and values that are not finite spread in a
// body, as in most exporters' graphs, but not in a kernel. Scores take memory with the square
// of the length.
//
// Start with Write (write.go) and Body (body.go). sizes.go counts tokens and positions,
// cache.go appends to caches, rotation.go and frequencies.go rotate queries and keys, mask.go
// decides which keys a query sees, scores.go computes the output.
package definition
