// Package fallback gives a rewritten model its op in standard operators (package definition), for runtimes
// without the op library, and removes it from a model that is rewritten again. Each function is proven, in
// ONNX Runtime without the op library, for every op that differs from the others. Write adds the functions
// to the model, Inline puts their nodes in the place of the ops, and Remove removes the functions.
package fallback
