package rewrite

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plainonnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// onnxBackend writes sites in standard ONNX operators. Where the model's own attention can
// be changed at a constant cost, that is done: other constants of its rotation, keys hidden
// before its softmax. Everywhere else the op's body stands in its place (plainbody.go).
type onnxBackend struct{ opts Options }

func (*onnxBackend) text() string { return "target onnx" }

func (*onnxBackend) keepsAttention() bool { return true }

func (b *onnxBackend) takes(o Options) error {
	b.opts = o
	return nil
}

// bind decides for each site how it is written, and binds those that get the op's body.
func (b *onnxBackend) bind(ctx context.Context, r *request, sites []*edited) error {
	var changed []*edited
	var layers []plainonnx.Layer
	for _, e := range sites {
		switch {
		case e.written != nil:
			if err := r.takesBody(ctx, e); err != nil {
				return &EditError{Layer: e.layer, Err: fmt.Errorf("the op's body cannot stand in its place: %w", err)}
			}
			e.form, e.formReason = Inlined, "an earlier rewrite put the op there"
		case b.changes(e):
			changed, layers = append(changed, e), append(layers, e.plain())
			fallthrough
		default:
			e.form = OwnNodes
		}
	}
	for i, err := range plainonnx.Refused(r.model, layers) {
		if b.opts.FixedCapacity != 0 {
			err = errors.New("a cache of fixed capacity is to be written")
		}
		if err == nil {
			continue
		}
		e := changed[i]
		if cannot := r.takesBody(ctx, e); cannot != nil {
			return &EditError{Layer: e.layer, Err: fmt.Errorf("its own nodes cannot be changed: %w; and the op's body cannot stand in their place: %w", err, cannot)}
		}
		e.form, e.formReason = Inlined, err.Error()
	}
	return nil
}

// changes reports whether a site is to become something else.
func (b *onnxBackend) changes(e *edited) bool { return b.opts.FixedCapacity != 0 || e.changes() }

// plain is the site as plainonnx takes it.
func (e *edited) plain() plainonnx.Layer {
	return plainonnx.Layer{Attention: e.Attention, Number: e.layer, Want: e.want, Documents: e.extra.Documents, Specs: e.specs, Known: e.known}
}

func (*onnxBackend) lower(e *edited) (lower.Change, error) {
	if e.form != Inlined {
		return e.change(nil, nil), nil
	}
	return lowerToOp(e)
}

// write changes the sites' own nodes first: the model is measured again to see that they
// turn as wanted, and ops would not be found then.
func (b *onnxBackend) write(ctx context.Context, m *onnx.Model, p *plan, report *Report) error {
	var layers []plainonnx.Layer
	var bodies []lower.Change
	for i, e := range p.sites {
		switch {
		case e.form == Inlined:
			bodies = append(bodies, p.changes[i])
		case b.changes(&e):
			layers = append(layers, e.plain())
			if e.Site.Rounded {
				report.warn("query and key are rounded to 8 bits behind the rotation, with ranges that were measured for the old angles: a channel may become up to √2 times as large as before, times the gain of the scaling, and is clipped there; rope-rewrite eval shows what that costs, and quantising the model after its scaling avoids it")
			}
		}
	}
	again := func(ctx context.Context, m *onnx.Model) (map[int]*measure.Measured, func(int) string, error) {
		return b.measureAgain(ctx, m, layers)
	}
	err := plainonnx.Write(ctx, m, layers, again)
	if layer := (*plainonnx.LayerError)(nil); errors.As(err, &layer) {
		return &EditError{Layer: layer.Layer, Err: layer.Err}
	}
	if err != nil {
		return err
	}
	if err := ir.Order(m.Graph); err != nil || len(bodies) == 0 {
		return err
	}
	if err := lower.Apply(m, bodies); err != nil {
		return err
	}
	report.warn(lower.Leftovers(bodies)...)
	return nil
}

// finish puts the op's body in the place of the ops.
func (*onnxBackend) finish(ctx context.Context, r *request, p *plan, _ *Report) error {
	return r.putBodies(ctx, p)
}

// measureAgain measures sites in a model whose constants were changed. It is the proof of
// what was written, no second analysis: the sites are where they were, and nothing but
// them is measured or reported.
func (b *onnxBackend) measureAgain(ctx context.Context, m *onnx.Model, layers []plainonnx.Layer) (map[int]*measure.Measured, func(int) string, error) {
	report := newReport(m)
	a := b.opts.analyser(report, true)
	a.proving = false // the model differs from the proven one in constants alone
	a.only = map[int]bool{}
	for _, l := range layers {
		a.only[l.Index] = true
	}
	a.say("reading the graph")
	parts, err := site.Scopes(m)
	if err != nil {
		return nil, nil, err
	}
	var found []delimited
	for _, part := range parts {
		found = append(found, a.delimit(part)...)
	}
	found = a.keepShared(found)
	sites, err := a.measure(ctx, found)
	if err != nil {
		return nil, nil, err
	}
	measured := map[int]*measure.Measured{}
	for _, f := range sites {
		measured[f.Index] = f.Measured
	}
	return measured, func(i int) string { return report.Sites[i].Reason }, nil
}
