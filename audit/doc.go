// Package audit compares what the attention of a model computes with what the files
// beside it claim: config.json of Hugging Face and genai_config.json of ONNX Runtime
// GenAI. Exporters lose scalings, bases and windows without a word.
//
// Start with Run, which gives a line for each claim. Repair writes into the model what
// the configuration says, where methods of package rope can.
package audit
