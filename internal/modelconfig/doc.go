// Package modelconfig reads what the files beside a model claim of its attention:
// Hugging Face's config.json, and genai_config.json of ONNX Runtime GenAI.
//
// Start with Read. A Config answers for the whole model (Heads, Positions, …) and
// for single layers (Rotation, Window), because models may give each its own. A key
// that the file does not have is no claim: library defaults are not filled in.
//
// The package knows keys and what they mean in transformers, and nothing of graphs.
package modelconfig
