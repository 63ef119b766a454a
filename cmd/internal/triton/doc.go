// Package triton writes a model as Triton Inference Server wants it: a folder in a model repository, with
// config.pbtxt, for the backend onnxruntime.
//
// Start with Config. The format is that of Triton's model_config.proto, in text.
package triton
