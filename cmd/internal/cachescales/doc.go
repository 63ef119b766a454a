// Package cachescales measures the fixed scales that the caches of a model need as int8: it runs the model on
// texts and keeps the largest magnitude of what each layer's cache holds, of all its channels or of each.
// The scale is a 127th of it.
//
//	r, err := cachescales.Measure(ctx, "model.onnx", texts, cachescales.Options{})
//	err = rewrite.WriteCacheScales(file, r.Scales)
package cachescales
