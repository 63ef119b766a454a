package rewrite

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
)

// opsBackend replaces sites by the fused op.
type opsBackend struct{}

func (*opsBackend) takes(Options) error { return nil }

func (*opsBackend) text() string { return "" }

func (*opsBackend) keepsAttention() bool { return false }

func (*opsBackend) bind(_ context.Context, _ *request, sites []*edited) error {
	for _, e := range sites {
		if err := e.bind(); err != nil {
			return fmt.Errorf("layer %d: %w", e.layer, err)
		}
	}
	return nil
}

// bind binds a site to the op that it becomes.
func (e *edited) bind() (err error) {
	if e.written != nil {
		e.binding = e.written.binding(e.Attention)
	} else if e.binding, err = lower.Bind(e.Site, e.Measured); err != nil {
		return err
	} else if e.binding, err = e.binding.InModel(e.Site); err != nil {
		return err
	}
	e.binding.Precision = e.precision
	return nil
}

func (*opsBackend) lower(e *edited) (lower.Change, error) { return lowerToOp(e) }

// lowerToOp replaces a bound site by the fused op.
func lowerToOp(e *edited) (lower.Change, error) {
	nodes, constants, err := lower.Nodes(e.binding, e.want, e.extra)
	return e.change(nodes, constants), err
}

func (*opsBackend) write(_ context.Context, m *onnx.Model, p *plan, report *Report) error {
	var changes []lower.Change
	for i, e := range p.sites {
		if e.form != OwnNodes {
			changes = append(changes, p.changes[i])
		}
	}
	if err := lower.Apply(m, changes); err != nil {
		return err
	}
	if !report.Again {
		report.warn(lower.Leftovers(changes)...)
	}
	return nil
}

// finish gives the model the op's definition.
func (*opsBackend) finish(ctx context.Context, r *request, p *plan, report *Report) error {
	return r.define(ctx, p, report)
}
