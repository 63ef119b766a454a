package fallback

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
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
		if site.IsOp(n) {
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
	seen := map[string]bool{}
	for n := range m.Graph.AllNodes() {
		f := foreign[names[n]]
		if f == nil {
			continue
		}
		if err := provenForeign(ctx, m, n, f, engine, seen); err != nil {
			return fmt.Errorf("%w (%s), which could not be verified to compute the same as the op (node %q): %w; start from the original file", ErrForeign, f.Name, n.Name, err)
		}
	}
	return nil
}

// provenForeign proves a function that another program wrote, once for all ops alike.
func provenForeign(ctx context.Context, m *onnx.Model, n *onnx.Node, f *onnx.Function, engine *sharedengine.Engine, seen map[string]bool) error {
	of, err := definition.Read(n)
	if err != nil {
		return err
	}
	op := Op{RotaryAttention: of, Node: n.Clone(), HeadSize: 2*len(of.Frequencies) + int(of.RotaryOffset)} // at least; an op does not say it
	if op.HeadSize == 0 {
		op.HeadSize = 64
	}
	op.Node.OpType = f.Name
	if key := op.description(); !seen[key] {
		seen[key] = true
		_, err = proven(ctx, engine, op, f, m.Opset(""))
	}
	return err
}
