package rewrite

import (
	"context"
	"errors"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plainonnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// onnxBackend changes constants of the model's own attention, and hides keys
// before its softmax.
type onnxBackend struct{ opts Options }

func (*onnxBackend) text() string { return "target onnx" }

func (*onnxBackend) keepsAttention() bool { return true }

func (b *onnxBackend) takes(o Options) error {
	b.opts = o
	switch {
	case o.FixedCapacity != 0:
		return errors.New("a cache of fixed capacity needs the op; it cannot go with the target onnx")
	case o.RawCache:
		return errors.New("a cache of un-rotated keys needs the op; it cannot go with the target onnx")
	case o.ExactAngles:
		return errors.New("exact angles need the op; they cannot go with the target onnx")
	}
	return nil
}

func (*onnxBackend) bind(*edited) error { return nil }

func (*onnxBackend) lower(e *edited) (lower.Change, error) { return e.change(nil, nil), nil }

func (b *onnxBackend) write(ctx context.Context, m *onnx.Model, p *plan, _ *Report) error {
	layers := make([]plainonnx.Layer, len(p.sites))
	for i, e := range p.sites {
		layers[i] = plainonnx.Layer{Attention: e.Attention, Number: e.layer, Want: e.want, Documents: e.extra.Documents, Specs: e.specs, Known: e.known}
	}
	again := func(ctx context.Context, m *onnx.Model) (map[int]*measure.Measured, func(int) string, error) {
		return b.measureAgain(ctx, m, p.sites)
	}
	err := plainonnx.Write(ctx, m, layers, again)
	if layer := (*plainonnx.LayerError)(nil); errors.As(err, &layer) {
		return &EditError{Layer: layer.Layer, Err: layer.Err}
	}
	if err != nil {
		return err
	}
	return ir.Order(m.Graph)
}

// measureAgain measures the planned sites in a model whose constants were changed. It is
// the proof of what was written, no second analysis: the sites are where they were, and
// nothing but them is measured or reported.
func (b *onnxBackend) measureAgain(ctx context.Context, m *onnx.Model, planned []edited) (map[int]*measure.Measured, func(int) string, error) {
	report := newReport(m)
	a := b.opts.analyser(report, true)
	a.proving = false // the model differs from the proven one in constants alone
	a.only = map[int]bool{}
	for _, e := range planned {
		a.only[e.Index] = true
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
