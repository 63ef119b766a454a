package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// takesBody binds a site that is to become the op's body in plain ONNX operators, or says
// why it cannot.
func (r *request) takesBody(ctx context.Context, e *edited) error {
	if e.Measured.RotationOnly {
		return fmt.Errorf("its rotation alone could be measured (%s)", e.reason)
	}
	if err := definition.Serves(r.model.Opset(""), e.Scope.View.Element(e.Site.Query.Boundary)); err != nil {
		return err
	}
	if e.written != nil {
		return e.bind()
	}
	refused, err := r.opRefused(ctx)
	if err != nil {
		return err
	}
	if why := refused[e.Index]; why != "" {
		return errors.New(why)
	}
	return e.bind()
}

// putBodies puts the op's body in the place of the ops, after it was proven for each.
func (r *request) putBodies(ctx context.Context, p *plan) error {
	if !slices.ContainsFunc(p.sites, func(e edited) bool { return e.form == Inlined }) {
		return nil
	}
	for _, e := range p.sites {
		if e.form == Inlined && e.written == nil {
			e.tellCacheSizes(r.model.Graph)
		}
	}
	functions, err := definition.Draft(r.model)
	if err == nil {
		_, err = r.proveDefinition(ctx, p, functions)
	}
	if err == nil {
		err = definition.Inline(r.model)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("the target onnx: %w", err)
	}
	return nil
}

// tellCacheSizes gives the graph's inputs of a site's cache [batch, kv heads, tokens, head
// size] the sizes that they leave open. Fused ops tell them elsewhere; standard ones do not.
func (e *edited) tellCacheSizes(g *onnx.Graph) {
	layouts := e.Measured.Layouts
	if e.Scope.Where != "" || e.Measured.Latent != nil || !layouts.KeyCached.Canonical() {
		return // no such inputs
	}
	for name, channels := range map[string]int64{e.binding.PastKey: layouts.Key.Channels, e.binding.PastValue: layouts.Value.Channels} {
		i := slices.IndexFunc(g.Inputs, func(v *onnx.ValueInfo) bool { return v.Name == name && len(v.Shape) == 4 })
		if i < 0 {
			continue
		}
		v := g.Inputs[i].Clone()
		for axis, size := range map[int]int64{1: layouts.Key.Heads, 3: channels} {
			if !v.Shape[axis].Known() {
				v.Shape[axis] = onnx.Dim{Value: size}
			}
		}
		g.Inputs[i] = v
	}
}
