//go:build !unix

package onnx

// syncFolder does nothing where folders cannot be synced.
func syncFolder(string) error { return nil }
