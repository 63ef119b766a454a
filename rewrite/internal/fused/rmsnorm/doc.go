// Package rmsnorm reads norms by the root mean square that are one node:
// SimplifiedLayerNormalization, which ONNX Runtime's optimizer, its model builder and
// onnxscript write among the standard operators, and RMSNormalization of opset 23.
//
//	y = scale · x / √(mean over the last dimensions of x² + epsilon)
//
// A norm may follow a rotation, and its factor per token commutes with that
// (HunYuan). What is read: any number of last dimensions where the graph tells the rank,
// the second output (the inverse root), 16-bit inputs, which are computed in float32.
package rmsnorm
