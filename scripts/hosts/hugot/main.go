// Command hugot runs a model through hugot's feature-extraction pipeline, which registers no custom ops:
//
//	hugot ort|go ONNXRUNTIME FOLDER <texts.json >embeddings.json
//
// FOLDER has model.onnx and tokenizer.json. The session is ONNX Runtime's (ort) or hugot's own in Go (go).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/knights-analytics/hugot"
	"github.com/knights-analytics/hugot/options"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: hugot ort|go ONNXRUNTIME FOLDER <texts.json >embeddings.json")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, backend, library, folder string) (err error) {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		return err
	}
	session, err := open(ctx, backend, library)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Destroy()) }()
	pipeline, err := hugot.NewPipeline(session, hugot.FeatureExtractionConfig{ModelPath: folder, Name: "embed"})
	if err != nil {
		return err
	}
	output, err := pipeline.RunPipeline(ctx, texts)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(output.Embeddings)
}

func open(ctx context.Context, backend, library string) (*hugot.Session, error) {
	if backend == "go" {
		return hugot.NewGoSession(ctx)
	}
	return hugot.NewORTSession(ctx, options.WithOnnxLibraryPath(library))
}
