package rewrite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Definition says whether the model carries its op in plain ONNX operators, for runtimes
// without the op library (package rewrite/definition).
type Definition struct {
	Ops      []string `json:"ops"`                 // names of the op that are defined; none where Reason says why
	Bytes    int      `json:"bytes"`               // that the functions take in the file
	MaxError float64  `json:"max_error,omitempty"` // of the functions against float64, relative to the largest number of a result
	Reason   string   `json:"reason,omitempty"`    // why there is none
}

// definitionOf describes the functions of a model that define its op, nil where it has none.
func definitionOf(m *onnx.Model) *Definition {
	functions := definition.Of(m)
	if functions == nil {
		return nil
	}
	d := &Definition{}
	for _, f := range functions {
		d.Ops = append(d.Ops, f.Name)
		d.Bytes += f.Size()
	}
	return d
}

// define gives the rewritten model the definition of its ops. Each function is proven, in
// ONNX Runtime without the op library, for every op that differs from the others. A model
// whose ops cannot be defined gets none, and the report says why.
func (r *request) define(ctx context.Context, p *plan, report *Report) error {
	if r.opts.NoDefinition {
		return nil
	}
	before := r.model.IRVersion
	functions, err := definition.Write(r.model)
	worst := 0.0
	if err == nil {
		worst, err = r.proveDefinition(ctx, p, functions)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		definition.Remove(r.model)
		r.model.IRVersion = before
		report.Definition = &Definition{Ops: []string{}, Reason: err.Error()}
		report.warn(fmt.Sprintf("the model carries no definition of its op, so it runs only where the op library is registered: %v", err))
		return nil
	}
	if report.Definition = definitionOf(r.model); report.Definition != nil { // else the model's own nodes were changed
		report.Definition.MaxError = worst
	}
	return nil
}

// proveDefinition proves the functions for the ops of a plan, and returns their largest error.
func (r *request) proveDefinition(ctx context.Context, p *plan, functions []*onnx.Function) (worst float64, _ error) {
	of := map[string]*onnx.Function{}
	for _, f := range functions {
		of[f.Name] = f
	}
	seen := map[string]bool{}
	for i, e := range p.sites {
		op, n := opOf(p.changes[i])
		if op == nil {
			continue
		}
		if err := definition.Serves(r.model.Opset(""), e.Scope.View.Element(e.Site.Query.Boundary)); err != nil {
			return 0, err
		}
		key := alike(n.OpType, *op, e.want.HeadSize)
		if seen[key] {
			continue
		}
		seen[key] = true
		off, err := r.provenDefinition(ctx, key, n, *op, of[n.OpType], e.want.HeadSize)
		if err != nil {
			return 0, fmt.Errorf("the function that defines it could not be proven (layer %d): %w", e.layer, err)
		}
		worst = max(worst, off)
	}
	return worst, nil
}

// provenDefinition proves a function for one op, once for all rewrites of a model that
// share what they learn of it.
func (r *request) provenDefinition(ctx context.Context, key string, n *onnx.Node, op customop.RotaryAttention, f *onnx.Function, headSize int) (float64, error) {
	compute := func() (float64, error) { return provenFunction(ctx, r.opts, n, op, f, r.model.Opset(""), headSize) }
	if r.opts.known == nil {
		return compute()
	}
	return remember(&r.opts.known.definitions, fmt.Sprintf("%s\n%s\n%d", key, definition.Text(f), r.model.Opset("")), compute)
}

// provenFunction proves a function for one op and returns its error.
func provenFunction(ctx context.Context, opts Options, n *onnx.Node, op customop.RotaryAttention, f *onnx.Function, opset int64, headSize int) (float64, error) {
	eng, err := opts.engine()
	if err != nil {
		return 0, err
	}
	defer eng.Close()
	return prove.Definition(ctx, eng, n, op, f, opset, headSize)
}

// alike describes an op without the names of its values: ops of one description are the same.
func alike(name string, op customop.RotaryAttention, headSize int) string {
	for _, v := range []*string{&op.Query, &op.Key, &op.Value, &op.PastKey, &op.PastValue, &op.PositionIDs, &op.AttentionMask, &op.AttentionBias,
		&op.CacheLength, &op.DocumentIDs, &op.SinkLogits, &op.BiasBeforeSoftcap, &op.TotalLength, &op.Output, &op.PresentKey, &op.PresentValue, &op.LogSumExp} {
		if *v != "" {
			*v = "given"
		}
	}
	return fmt.Sprintf("%s %d %+v", name, headSize, op)
}

// ErrForeignDefinition says that a model defines the op by a function that computes
// something else than the op.
var ErrForeignDefinition = errors.New("the model defines the op of " + customop.Domain + " by a function of its own")

// withoutDefinition takes the functions out of a model that define its ops, so that they
// are not taken for functions of the model's own. Functions that differ from those that
// the ops would be given (by another version of this tool, or by another program) are
// proven first; without that the model would mean one thing where the op library is
// registered and another one where it is not.
func withoutDefinition(ctx context.Context, m *onnx.Model, opts Options) error {
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
		return fmt.Errorf("%w: %w", ErrForeignDefinition, err)
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
		if err := provenForeign(ctx, m, n, f, opts, seen); err != nil {
			return fmt.Errorf("%w (%s), which is not proven to compute what the op computes (node %q): %w; start from the original file", ErrForeignDefinition, f.Name, n.Name, err)
		}
	}
	return nil
}

// provenForeign proves a function that another program wrote, once for all ops alike.
func provenForeign(ctx context.Context, m *onnx.Model, n *onnx.Node, f *onnx.Function, opts Options, seen map[string]bool) error {
	op, err := definition.Read(n)
	if err != nil {
		return err
	}
	headSize := 2*len(op.Frequencies) + int(op.RotaryOffset) // at least; an op does not say it
	if headSize == 0 {
		headSize = 64
	}
	key := alike(f.Name, op, headSize)
	if seen[key] {
		return nil
	}
	seen[key] = true
	n = n.Clone()
	n.OpType = f.Name
	_, err = provenFunction(ctx, opts, n, op, f, m.Opset(""), headSize)
	return err
}
