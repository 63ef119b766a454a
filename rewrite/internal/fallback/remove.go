package fallback

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// ErrForeign says that a model has a function of its own for the op, which computes
// something else.
var ErrForeign = errors.New("the model has a function of its own for the op of " + customop.Domain)

// Remove removes the fallback's functions from a model, so they are not taken for the model's
// own. Functions that differ from those that this version would write (they come from another
// version or another program) are proven first: otherwise the model might compute one thing
// with the op library and another without it.
func Remove(ctx context.Context, m *onnx.Model, engine *sharedengine.Engine) error {
	carried := definition.Of(m)
	if carried == nil {
		return nil
	}
	names := map[*onnx.Node]string{}
	for n := range m.Graph.AllNodes() {
		if n.Domain == customop.Domain {
			names[n] = n.OpType
		}
	}
	functions, err := definition.Write(m)
	definition.Remove(m)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForeign, err)
	}
	usual := map[string]bool{}
	for _, f := range functions {
		usual[definition.Text(f)] = true
	}
	foreign := map[string]*onnx.Function{}
	for _, f := range carried {
		if !usual[definition.Text(f)] { // a text has the name too
			foreign[f.Name] = f
		}
	}
	p := prover{engine: engine, opset: m.Opset(""), seen: map[string]bool{}}
	for n := range m.Graph.AllNodes() {
		f := foreign[names[n]]
		if f == nil {
			continue
		}
		if err := provenForeign(ctx, p, n, f); err != nil {
			return fmt.Errorf("%w (%s), which could not be verified to compute the same as the op (node %q): %w; start from the original file", ErrForeign, short.Name(f.Name), short.Name(n.Name), err)
		}
	}
	return nil
}

// fewTokens is how many tokens a function of unknown origin is run on, at most.
const fewTokens = 64

// ErrOff says that a function computes something else than its op.
var ErrOff = prove.ErrOff

// Agree runs functions that a model has for its ops, each by itself in place of one op, on a few tokens.
// The error wraps ErrOff where one computes something else; others say why one could not be run.
func Agree(ctx context.Context, m *onnx.Model, functions []*onnx.Function, engine *sharedengine.Engine) error {
	p := prover{engine: engine, opset: m.Opset(""), tokens: fewTokens, seen: map[string]bool{}}
	for _, f := range functions {
		called := false
		for n := range m.Graph.AllNodes() {
			if n.Domain != customop.Domain || n.OpType != f.Name {
				continue
			}
			called = true
			if err := provenForeign(ctx, p, n, f); err != nil {
				return fmt.Errorf("%s (node %q): %w", f.Name, short.Name(n.Name), err)
			}
		}
		if !called {
			return fmt.Errorf("no node is a %s", f.Name)
		}
	}
	return nil
}

// provenForeign proves a function that another program wrote, once for all ops alike.
func provenForeign(ctx context.Context, p prover, n *onnx.Node, f *onnx.Function) error {
	of := opOf
	if site.IsRotary(n) {
		of = rotationOf
	}
	op, err := of(n, f)
	if err == nil && p.first(op) {
		_, err = p.prove(ctx, op, f)
	}
	return err
}

// opOf is a node as an op that a function stands for.
func opOf(n *onnx.Node, f *onnx.Function) (tried, error) {
	of, err := definition.Read(n)
	if err != nil {
		return nil, err
	}
	op := Op{RotaryAttention: of, Node: n.Clone(), HeadSize: 2*len(of.Frequencies) + int(of.RotaryOffset)} // at least; an op does not say it
	if op.HeadSize == 0 {
		op.HeadSize = 64
	}
	op.Node.OpType = f.Name
	return op, nil
}
