// Package npz reads arrays from NumPy's .npz archives, the form in which
// testdata keeps the outputs that a model must give.
//
// Open an archive, then ask for an array by its key and element type:
//
//	file, err := npz.Open("testdata/goldens/llama.npz")
//	...
//	defer file.Close()
//	logits, shape, err := file.Float32("plain")
//
// Arrays come flat, the last axis fastest. Asking for another type than the
// archive has is an error; nothing is converted.
package npz
