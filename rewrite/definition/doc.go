// Package definition writes the op RotaryAttention in plain ONNX operators, as functions
// that a model carries (model-local functions, FunctionProto).
//
// A runtime that knows the op by its library computes it there and ignores the function.
// One that does not puts the function's body in the node's place. So one file runs fast
// where the library is, and runs at all where it is not.
//
//	written, err := definition.Write(m)   // gives m the functions of the ops that it holds
//	definition.Remove(m)                  // takes them out again
//
// The body computes what customop.RotaryAttentionSpec says and nothing else, in float32
// for every element type. It is the second implementation of the specification, and held
// to the same rules as the kernels.
//
// One body must be right for all nodes of its name: older runtimes tell functions apart by
// nothing else. So numbers are read from the node (attributes by reference), and what
// decides about the structure of the body (form.go) splits the nodes into groups; the
// first keeps the op's name, the others have numbered ones (customop.OpTypes). A model
// with more groups than names, or one that a body cannot be written for, gets none, and
// the error says why.
//
// What a kernel checks and a body cannot: that positions and document ids are in range,
// that position − index is one number for the tokens of a row, that cached tokens fit into
// a buffer's capacity (the run ends with an error of ScatterND then), and that memory of
// past and present does not overlap. Hidden keys and values that are no finite numbers
// spread in a body, as they do in most exporters' graphs, and not in a kernel. Scores take
// memory with the square of the length.
//
// Start with Write (write.go) and Body (body.go). sizes.go counts tokens and positions,
// cache.go appends to caches, rotation.go and frequencies.go turn queries and keys, mask.go
// says who sees whom, scores.go computes the output.
package definition
