// Package modelconfig reads what the files beside a model claim of its attention:
// Hugging Face's config.json, and genai_config.json of ONNX Runtime GenAI.
//
// Start with Read. A Config answers for the whole model (Heads, Positions, …) and
// for single layers (Rotation, Window), because models may give each its own. A key
// that the file does not have is no claim: library defaults are not filled in.
//
// Text.Apply writes what a model became. The tables of forms.go, windows.go and unsaid.go say which keys express a
// method, for which types of models, and what has none; audits read by the same tables.
//
// The package knows keys and what they mean in transformers, and nothing of graphs.
package modelconfig
