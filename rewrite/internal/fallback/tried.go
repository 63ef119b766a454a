package fallback

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
)

// tried is an op that a function is tried in place of.
type tried interface {
	// description describes the op without the names of its values: ops of one description are the same.
	description() string
	// proven proves a function for the op on calls of so many tokens at most, of any number with 0, and
	// returns its error.
	proven(ctx context.Context, eng engine.Engine, f *onnx.Function, opset int64, tokens int) (float64, error)
}

// prover proves functions, once for ops that differ in names alone.
type prover struct {
	engine *sharedengine.Engine
	opset  int64 // of the model
	tokens int   // of a call at most; 0 is any number
	seen   map[string]bool
}

// first reports whether no op like this was asked for before.
func (p prover) first(op tried) bool {
	key := op.description()
	seen := p.seen[key]
	p.seen[key] = true
	return !seen
}

func (p prover) prove(ctx context.Context, op tried, f *onnx.Function) (float64, error) {
	eng, err := p.engine.Get()
	if err != nil {
		return 0, err
	}
	return op.proven(ctx, eng, f, p.opset, p.tokens)
}

// given replaces the name of a value.
func given(name string) string {
	if name == "" {
		return ""
	}
	return "given"
}
