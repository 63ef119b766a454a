package main

import (
	"context"
	"errors"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// dead is a device that an access beyond its memory has ended.
type dead struct{ engine.Engine }

func (dead) Load(context.Context, engine.Model) (engine.Session, error) {
	return nil, errors.New("an illegal memory access was encountered")
}

// A judge whose device runs nothing any more ends, so that no later mutant counts as one that does not run.
func TestDeviceThatRunsNothing(t *testing.T) {
	const path = "../../../testdata/models/llama__dynamo18/model.onnx"
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for provider, verdicts := range map[string]map[mutant.Verdict]bool{
		"":     {mutant.NotRun: true, mutant.Same: true},
		"CUDA": {mutant.NotRun: false, mutant.Same: true},
	} {
		c := court{trial: trial{models: []string{path}, provider: provider}, judge: mutant.Judge{Engine: dead{}}, loaded: map[string]*export{path: {model: m}}}
		for verdict, want := range verdicts {
			if err := c.able(t.Context(), outcome{Verdict: verdict}, question{Seed: 7}); (err == nil) != want {
				t.Errorf("provider %q, a mutant that is %s: %v", provider, verdict, err)
			}
		}
	}
}
