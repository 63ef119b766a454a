package rewrite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/backend"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/calls"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fallback"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/feature"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
)

// ServeIfWorker makes the process an evaluating worker if it was started as one
// (Options.Evaluation.Worker), and then does not return. Call it first in main.
func ServeIfWorker() { engine.ServeIfWorker() }

// Rewrite finds the attention layers of m, verifies for each that the fused op computes the
// same, and replaces the verified ones by the op with the edits applied. m is changed in memory,
// and only if the error is nil. Its file is not touched.
//
// A model that Rewrite wrote before is edited again from the original values in its record
// (package provenance): methods never stack, unless Options.Earlier.Carried or a scaling's
// base=carried asks for it. Its layers hold the op and are not verified again.
//
// The report has every attention layer, rewritten or unchanged with the reason. The error is
// ErrNoAttention if the model has neither rotary attention nor a bias by distance, and ErrPartial if a layer that was asked
// for is unchanged and Options.AllowUnchanged does not allow it, and ErrLimited if Options.AnyLength asks for more than is
// known. Other errors say what prevented
// the whole work: a missing library, which is looked for before the graph is read, or a method
// that does not fit (*EditError). After the context's deadline the error is the context's.
func Rewrite(ctx context.Context, m *onnx.Model, opts Options) (*Report, error) {
	start := time.Now()
	opts, err := opts.FindLibraries()
	if err != nil {
		return newReport(m), err
	}
	r, err := newRequest(m, opts)
	if err != nil {
		return newReport(m), err
	}
	v, err := r.within(ctx, r.rewrite)
	report := r.report(v)
	if err == nil && !opts.AllowUnchanged {
		err = report.partial()
	}
	if reach := report.Reach(); err == nil && opts.AnyLength && len(reach.Limited) > 0 {
		err = fmt.Errorf("%w: first layer %d (%s)", ErrLimited, reach.Limited[0].Layers[0], reach.Limited[0].Why)
	}
	if err == nil && !opts.PlanOnly {
		m.Assign(v.source.model)
	}
	report.Seconds = time.Since(start).Seconds()
	return report, err
}

// rewrite runs a model through all stages.
func (r *request) rewrite(ctx context.Context, eng *sharedengine.Engine) (v values, err error) {
	if v.source, err = r.prepare(ctx, eng); err != nil {
		return v, err
	}
	if v.analysis, err = r.analyse(ctx, eng, v.source); err != nil {
		return v, err
	}
	if version := eng.ProverVersion(); version != "" {
		v.proving = &provenance.Runtime{Version: version, Provider: r.opts.Evaluation.ProveWith.Provider}
	}
	if v.plan, err = r.plan(ctx, eng, v.source, v.analysis); err != nil {
		return v, err
	}
	if r.opts.PlanOnly {
		v.result = &result{}
		if !v.plan.Nothing && len(v.plan.Sites) > 0 {
			v.result.record = r.record(v, shapesOf(v.source.model))
		}
		return v, nil
	}
	v.result, err = r.write(ctx, eng, v)
	return v, err
}

// within runs stages within the limits of the options, and returns their errors as callers see them.
func (r *request) within(ctx context.Context, stages func(context.Context, *sharedengine.Engine) (values, error)) (v values, err error) {
	defer recovered(&err)
	o := r.opts
	eng := &sharedengine.Engine{Runtime: o.Evaluation.Runtime, Library: o.Evaluation.Library, Worker: o.Evaluation.Worker, Memory: o.Evaluation.Memory,
		Prover: sharedengine.Prover(o.Evaluation.ProveWith)}
	defer eng.Close()
	limited, end := eng.Limited(ctx)
	defer end()
	v, err = stages(limited, eng)
	err = public(err)
	if cause := context.Cause(limited); ctx.Err() == nil && cause != nil {
		err = cause
	}
	if v.source != nil && v.source.unseen != nil && errors.Is(err, ErrNoAttention) {
		err = fmt.Errorf("%w (%w)", err, v.source.unseen)
	}
	return v, err
}

// prepare copies the model, without the fallback of an earlier rewrite and its changes to inputs and
// outputs. The copy is converted to a newer opset if asked for, and its own functions are inlined.
func (r *request) prepare(ctx context.Context, eng *sharedengine.Engine) (*source, error) {
	s := &source{model: r.model.Clone()}
	if err := fallback.Remove(ctx, s.model, eng); err != nil {
		return s, err
	}
	if n := r.opts.Output.OperatorSet; n != 0 {
		raised, err := opset.Raise(s.model, n)
		switch {
		case err != nil:
			return s, unfit(WholeModel, plan.Of("opset", err))
		case raised.From == raised.To && raised.Converted == 0:
			s.warnings = append(s.warnings, fmt.Sprintf("the model already uses opset %d, so it was not converted", raised.To))
		default:
			s.raised = &raised
		}
	}
	if s.calls, s.unseen = calls.Inline(s.model); s.unseen != nil {
		s.warnings = append(s.warnings, fmt.Sprintf("the model's own functions are not searched: %v", s.unseen))
	}
	if r.earlier != nil && !r.inspection {
		if err := r.earlier.Undo(s.model); err != nil {
			return s, unfit(WholeModel, err)
		}
	}
	return s, nil
}

// analyse finds, measures and proves the sites, or takes them from the record of an earlier rewrite.
func (r *request) analyse(ctx context.Context, eng *sharedengine.Engine, s *source) (*analysis.Analysis, error) {
	if r.earlier != nil && r.earlier.HoldsOps() {
		a, err := analysis.OfEarlier(s.model, r.earlier)
		if err != nil {
			return a, unfit(WholeModel, err)
		}
		return a, r.checkLayers(a)
	}
	found, err := analysis.Find(ctx, s.model, eng, r.analysis())
	if err != nil {
		return &found.Analysis, err
	}
	if err := r.checkLayers(&found.Analysis); err != nil {
		return &found.Analysis, err
	}
	return found.Measure(ctx)
}

// plan says what each site becomes.
func (r *request) plan(ctx context.Context, eng *sharedengine.Engine, s *source, a *analysis.Analysis) (*plan.Plan, error) {
	features, err := feature.Make(ctx, r.features, feature.Subject{Model: s.model, Analysis: a, Engine: eng, Progress: r.opts.Progress})
	if err != nil {
		return nil, err
	}
	p, err := r.methods.Make(a, features)
	if err != nil {
		return p, err
	}
	if err := r.target.Form(ctx, r.job(eng, values{source: s, analysis: a, plan: p})); err != nil {
		return p, plan.Of("target", err)
	}
	p.Conclude(r.target.Text(), r.target.Keeps)
	return p, p.Check()
}

func (r *request) job(eng *sharedengine.Engine, v values) backend.Job {
	return backend.Job{Model: v.source.model, Analysis: v.analysis, Plan: v.plan, Engine: eng,
		Capacity: r.features.FixedCapacity, Retyped: r.features.CacheType != "", NoFallback: r.opts.Output.NoFallback, Analysed: r.analysis()}
}

// write changes the copy as planned, and records in it what was done.
func (r *request) write(ctx context.Context, eng *sharedengine.Engine, v values) (*result, error) {
	m, out := v.source.model, &result{}
	if !v.plan.Nothing {
		before := shapesOf(m)
		var err error
		if out.Written, err = r.target.Write(ctx, r.job(eng, v)); err != nil {
			return out, plan.Of("target", err)
		}
		if len(v.plan.Sites) > 0 {
			out.record = r.record(v, before)
			if err := provenance.Write(m, out.record); err != nil {
				return out, err
			}
		}
	}
	if v.analysis.Rewritable() {
		return out, v.source.calls.Fold()
	}
	v.source.calls.Restore()
	return out, nil
}

// DefaultOutput returns where the command writes by default: model.onnx becomes
// model.rope.onnx beside it.
func DefaultOutput(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + ".rope.onnx"
}
