// Package float16 helps with models in 16 bits: it brings their inputs and outputs
// to float32, computes all of them in float32 (what a model in 16 bits is
// measured against), and does the work of the bfloat16 kernels that ONNX
// Runtime's CPU provider lacks.
package float16
