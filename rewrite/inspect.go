package rewrite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Inspect says what is in a model: its sites, measured and proven as Rewrite does it, or,
// of a model that Rewrite wrote, its record and what its ops compute as they stand.
// External data may be missing. m may be changed and is not to be saved.
func Inspect(ctx context.Context, m *onnx.Model, opts Options) (*Report, error) {
	carried := definitionOf(m)
	foreign := withoutDefinition(ctx, m, opts)
	if ctx.Err() != nil {
		return newReport(m), ctx.Err()
	}
	report, err := inspectGraphs(ctx, m, opts)
	report.Definition = carried
	if foreign != nil {
		report.warn(foreign.Error())
	}
	return report, err
}

func inspectGraphs(ctx context.Context, m *onnx.Model, opts Options) (*Report, error) {
	e, err := readEarlier(m)
	if err != nil {
		return newReport(m), err
	}
	if e != nil && e.holdsOps() {
		return e.inspect(m)
	}
	if e != nil {
		if _, ok := e.first(func(s provenance.Site) bool { return !Form(s.Form).told() }); ok {
			return e.inspectRecord(m), nil
		}
	}
	opts.inspect, opts.AllowKept, opts.WithoutWeights = true, true, true
	report, err := Rewrite(ctx, m, opts)
	if e != nil {
		report.Record = e.record
	}
	return report, err
}

// inspect reports the ops of a model as they stand.
func (e *earlier) inspect(m *onnx.Model) (*Report, error) {
	start := time.Now()
	report := newReport(m)
	report.Again, report.Record = true, e.record
	if e.record == nil {
		report.warn("the model has no record of what it was before; it cannot be rewritten again or restored, start from the original file for that")
		return report, e.inspectOps(report)
	}
	if err := e.usable(); err != nil {
		report.warn(err.Error())
		return report, e.inspectOps(report)
	}
	list, err := e.read(m)
	if err != nil {
		report.warn(err.Error())
		return report, e.inspectOps(report)
	}
	for layer, w := range list {
		if w == nil {
			report.Sites = append(report.Sites, e.kept(layer))
			continue
		}
		s := w.site()
		s.value(w.now)
		s.Mask = w.now.Mask.String()
		s.Cache = cacheOf(w.op, s.Cache)
		report.Sites = append(report.Sites, s)
	}
	e.complete(report)
	report.Seconds = time.Since(start).Seconds()
	return report, nil
}

// complete adds to a report of the record's sites what does not depend on how they are written.
func (e *earlier) complete(report *Report) {
	for _, d := range e.record.Edits {
		report.Edits = append(report.Edits, d.String())
	}
	report.number()
	report.carried(e.fill(rope.Context{}))
}

// inspectRecord reports what the record says of a model whose sites are written in nodes
// that are not measured.
func (e *earlier) inspectRecord(m *onnx.Model) *Report {
	report := newReport(m)
	report.Again, report.Record = true, e.record
	for layer := range e.record.Layers() {
		report.Sites = append(report.Sites, e.kept(layer))
	}
	for _, s := range e.record.Sites {
		for _, layer := range s.Layers {
			site := SiteOf(s)
			if s.Computes != nil {
				site.value(*s.Computes)
				site.Mask = s.Computes.Mask.String()
			}
			report.Sites[layer] = site
		}
	}
	e.complete(report)
	report.warn("this is what the record of the model says: the nodes that an earlier rewrite put there are not measured")
	return report
}

// inspectOps reports ops of which no record says more.
func (e *earlier) inspectOps(report *Report) error {
	for _, n := range e.ops {
		op, err := definition.Read(n)
		if err != nil {
			return fmt.Errorf("it cannot be read: %w", err)
		}
		a, err := lower.Value(op, rope.Attention{})
		if err != nil {
			return err
		}
		s := Site{Node: n.Name, Op: n.OpType, Status: Rewritten, Mask: a.Mask.String(), Cache: cacheOf(op, "none")}
		s.value(a)
		report.Sites = append(report.Sites, s)
		if op.Precision == fastPrecision && !slices.Contains(report.Edits, "precision fast") {
			report.Edits = append(report.Edits, "precision fast")
		}
	}
	report.number()
	return nil
}

// cacheOf says what kind of cache an op has.
func cacheOf(op customop.RotaryAttention, otherwise string) string {
	switch {
	case op.TotalLength != "":
		return "counted"
	case op.CacheLength != "":
		return fixedCacheName
	case op.PastKey != "":
		return "growing"
	}
	return otherwise
}
