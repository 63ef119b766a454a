// Package fallback gives a rewritten model its op in standard operators (package definition), for runtimes
// without the op library, and takes it out of a model that is rewritten again. Each function is proven, in
// ONNX Runtime without the op library, for every op that differs from the others. Write adds functions that
// the model carries; Inline puts their bodies in the place of the ops; Remove takes functions out.
package fallback
