package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/earlier"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fallback"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Inspect reports what is in a model: its attention layers, measured and verified as Rewrite does
// it. Of a model that Rewrite wrote it reports the record and what the ops compute now.
// External data may be missing. Only the options of evaluation matter, and Target, which decides
// what is enough of a layer. m is not changed.
func Inspect(ctx context.Context, m *onnx.Model, opts Options) (*Report, error) {
	start := time.Now()
	e, err := earlier.Read(m)
	if err != nil {
		return newReport(m), err
	}
	report, err := inspect(ctx, m, opts, e)
	report.Fallback = (*Fallback)(fallback.Of(m))
	if e != nil {
		report.Record = e.Record
	}
	report.Seconds = time.Since(start).Seconds()
	return report, err
}

func inspect(ctx context.Context, m *onnx.Model, opts Options, e *earlier.Rewrite) (*Report, error) {
	if e != nil && e.HoldsOps() {
		return inspectOps(ctx, m, opts, e)
	}
	if e != nil {
		if _, ok := e.First(func(s provenance.Site) bool { return !lower.Form(s.Form).Told() }); ok {
			return ofRecord(m, e), nil
		}
	}
	opts, err := opts.FindLibraries()
	if err != nil {
		return newReport(m), err
	}
	r, err := newInspection(m, opts, e)
	if err != nil {
		return newReport(m), err
	}
	v, err := r.within(ctx, func(ctx context.Context, eng *sharedengine.Engine) (v values, err error) {
		if v.source, err = r.prepare(ctx, eng); err != nil {
			return v, err
		}
		if v.analysis, err = r.analyse(ctx, eng, v.source); err != nil {
			return v, err
		}
		v.plan = &plan.Plan{Warnings: r.methods.Compare(v.analysis)}
		return v, nil
	})
	if e != nil {
		return recalled(m, e, r.report(v), err)
	}
	return r.report(v), err
}

// recalled completes the report of a model whose own nodes an earlier rewrite changed: what is measured
// of no layer, or not of one, is what the record says.
func recalled(m *onnx.Model, e *earlier.Rewrite, report *Report, err error) (*Report, error) {
	unseen := errors.Is(err, site.ErrNoAttention) // no layer rotates
	if err != nil && !unseen {
		return report, err
	}
	list, all := ofRecord(m, e), true
	for _, r := range e.Record.Sites {
		for _, layer := range r.Layers {
			switch measured := !unseen && layer < len(report.Sites) && report.Sites[layer].Status == Rewritten; {
			case measured:
				list.Sites[layer] = report.Sites[layer]
			case r.Computes == nil:
				return report, err
			default:
				all = false
			}
		}
	}
	if all {
		return report, err
	}
	return list, nil
}

// inspectOps reports what the ops of a model compute now.
func inspectOps(ctx context.Context, m *onnx.Model, opts Options, e *earlier.Rewrite) (*Report, error) {
	copied := m.Clone()
	eng := &sharedengine.Engine{Runtime: opts.Evaluation.Runtime, Library: opts.Evaluation.Library, Worker: opts.Evaluation.Worker, Memory: opts.Evaluation.Memory}
	defer eng.Close()
	foreign := fallback.Remove(ctx, copied, eng)
	if ctx.Err() != nil {
		return newReport(m), ctx.Err()
	}
	report, err := ofOps(m, copied, e)
	if foreign != nil {
		report.warn(foreign.Error())
	}
	return report, err
}

// ofOps makes the report of a copy of a model without its fallback.
func ofOps(m, copied *onnx.Model, e *earlier.Rewrite) (*Report, error) {
	report := newReport(m)
	report.Again = true
	if e.Record == nil {
		report.warn("the model has no record of its rewrite, so it cannot be rewritten again or restored; start from the original file")
		return report, report.ofUnrecorded(e)
	}
	if err := e.Usable(); err != nil {
		report.warn(err.Error())
		return report, report.ofUnrecorded(e)
	}
	list, err := e.OpsByLayer(copied)
	if err != nil {
		report.warn(err.Error())
		return report, report.ofUnrecorded(e)
	}
	for layer, w := range list {
		if w == nil {
			report.Sites = append(report.Sites, unchangedBefore(e, layer))
			continue
		}
		s := SiteOf(*w.Record)
		s.Node, s.ScoresOnly = w.Name(), w.Turned()
		s.value(w.Now)
		if w.Rotary == nil {
			s.Mask, s.Cache = w.Now.Mask.String(), lower.CacheOfOp(w.Op, s.Cache)
		}
		report.Sites = append(report.Sites, s)
	}
	report.complete(e)
	return report, nil
}

// complete adds to the report of a record's sites what does not depend on their form.
func (r *Report) complete(e *earlier.Rewrite) {
	for _, d := range e.Record.Edits {
		r.Edits = append(r.Edits, d.String())
	}
	for i := range r.Sites {
		r.Sites[i].Layer = i
		r.Sites[i].recognise(e.Fill(rope.Context{}))
	}
}

// ofRecord reports what the record says of a model whose sites were written as nodes
// that are not measured.
func ofRecord(m *onnx.Model, e *earlier.Rewrite) *Report {
	report := newReport(m)
	report.Again = true
	for layer := range e.Record.Layers() {
		report.Sites = append(report.Sites, unchangedBefore(e, layer))
	}
	for _, s := range e.Record.Sites {
		for _, layer := range s.Layers {
			site := SiteOf(s)
			if s.Computes != nil {
				site.value(*s.Computes)
				site.Mask = s.Computes.Mask.String()
			}
			report.Sites[layer] = site
		}
	}
	report.complete(e)
	report.warn("this is from the model's record; nodes of an earlier rewrite are not measured")
	return report
}

// ofUnrecorded reports ops without a record.
func (r *Report) ofUnrecorded(e *earlier.Rewrite) error {
	for layer, n := range e.Ops {
		if site.IsRotary(n) {
			continue // it does not say of how many heads
		}
		op, err := definition.Read(n)
		if err != nil {
			return fmt.Errorf("it cannot be read: %w", err)
		}
		a, err := lower.Value(op, rope.Attention{})
		if err != nil {
			return err
		}
		s := Site{Node: n.Name, Layer: layer, Op: n.OpType, Status: Rewritten, Mask: a.Mask.String(), Cache: lower.CacheOfOp(op, lower.NoCache)}
		s.value(a)
		r.Sites = append(r.Sites, s)
		if op.Precision == plan.Fast && !slices.Contains(r.Edits, "precision fast") {
			r.Edits = append(r.Edits, "precision fast")
		}
	}
	return nil
}
