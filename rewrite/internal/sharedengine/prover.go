package sharedengine

import (
	"cmp"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/provenance"
)

// Prover is a runtime that sites are proven with, in the place of the one that measures them: kernels of another
// version or execution provider may compute something else of the same nodes.
type Prover struct {
	Runtime  string // path of the ONNX Runtime shared library; "" is the one that measures
	Provider string // execution provider by ONNX Runtime's short name; "" is the CPU
}

// Proving returns the engine that sites are proven with, and what it is called where it is another one than Get's;
// "" else.
func (e *Engine) Proving() (engine.Engine, string, error) {
	if e.Prover == (Prover{}) {
		eng, err := e.Get()
		return eng, "", err
	}
	if e.prover == nil {
		opened, err := e.openAs(engine.Config{Runtime: cmp.Or(e.Prover.Runtime, e.Runtime), Provider: e.Prover.Provider})
		if err != nil {
			return nil, "", fmt.Errorf("what layers are verified with (--prove-with; in Go Options.Evaluation.ProveWith) cannot be used: %w", err)
		}
		e.prover = opened
	}
	return e.prover, provenance.Runtime{Version: e.ProverVersion(), Provider: e.Prover.Provider}.String(), nil
}

// ProverVersion is the version of the ONNX Runtime that sites are proven with, as that says it; "" before it was
// opened.
func (e *Engine) ProverVersion() string {
	eng := e.prover
	if w, ok := eng.(watched); ok {
		eng = w.Engine
	}
	if v, ok := eng.(interface{ Version() string }); ok {
		return v.Version()
	}
	return ""
}
