// Package audit compares what the attention of a model computes with what the files
// beside it claim: config.json of Hugging Face and genai_config.json of ONNX Runtime
// GenAI. Exporters lose scalings, bases and windows without a warning.
//
// Start with Run, which gives a line for each claim. Outcome sums
// the lines up. Repair changes the model to what the configuration says, as far as methods of
// package rope can.
//
//	report, err := audit.Run(ctx, "model.onnx", audit.Options{})
//	for _, line := range report.Lines {
//		if line.Verdict == audit.Differs { … }
//	}
//
// Look measures without a configuration: what each attention layer of a model computes.
//
// audit.go makes lines of what is claimed and measured, survey.go measures, layer.go, rotation.go
// and positions.go compare, repair.go repairs.
package audit
