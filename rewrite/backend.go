package rewrite

import (
	"context"
	"errors"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// opsBackend replaces sites by the fused op.
type opsBackend struct{}

func (*opsBackend) takes(Options) error { return nil }
func (*opsBackend) text() string        { return "" }

func (*opsBackend) bind(e *edited) (err error) {
	e.wiring, err = e.site.wiring(e.lifted)
	return err
}

func (*opsBackend) lower(e *edited) (change, error) {
	e.wiring.documents = e.documents
	nodes, constants, err := lower(e.wiring, e.want)
	return e.change(nodes, constants), err
}

func (*opsBackend) write(_ context.Context, m *onnx.Model, p *plan, report *Report) error {
	if err := apply(m, p.changes); err != nil {
		return err
	}
	report.warn(leftovers(p.changes)...)
	return nil
}

// onnxBackend changes constants of the model's own attention, and hides keys
// before its softmax.
type onnxBackend struct{ opts Options }

func (*onnxBackend) text() string { return "target onnx" }

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

func (*onnxBackend) lower(e *edited) (change, error) { return e.change(nil, nil), nil }

func (b *onnxBackend) write(ctx context.Context, m *onnx.Model, p *plan, _ *Report) error {
	sites := make([]retabled, len(p.sites))
	for i, e := range p.sites {
		sites[i] = retabled{analysed: e.analysed, layer: e.layer, want: e.want, documents: e.documents, specs: e.specs, known: e.known}
	}
	err := retable(ctx, m, sites, b.measureAgain)
	if layer := (*layerError)(nil); errors.As(err, &layer) {
		return &EditError{Layer: layer.layer, Err: layer.err}
	}
	if err != nil {
		return err
	}
	return order(m.Graph)
}

// measureAgain measures a model whose constants were changed.
func (b *onnxBackend) measureAgain(ctx context.Context, m *onnx.Model) (map[int]*lifted, func(int) string, error) {
	opts := b.opts
	opts.Layers = nil
	report := newReport(m)
	a := opts.analyser(report)
	a.proving = false // the model differs from the proven one in constants alone
	found, err := a.find(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	sites, err := a.measure(ctx, found)
	if err != nil {
		return nil, nil, err
	}
	measured := map[int]*lifted{}
	for _, f := range sites {
		measured[f.index] = f.lifted
	}
	return measured, func(i int) string { return report.Sites[i].Reason }, nil
}
