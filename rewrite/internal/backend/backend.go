package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fallback"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
)

// Target is what sites become.
type Target struct {
	Name string

	// Keeps says that the model's own nodes stay where they can: it is enough if the rotation
	// of a site can be measured, and the output for padded tokens is unchanged.
	Keeps bool

	// Rotary says that a rotation alone can be replaced, where the attention as a whole is not proven.
	Rotary bool

	// Angles is how angles are rounded if the caller does not say it.
	Angles string

	Backend
	setting string
}

// Backend writes the sites of one target.
type Backend interface {
	// Accepts refuses options that the target does not have. setting follows its name.
	Accepts(setting string, options Options) error
	// Form decides how each site of the job's plan is written.
	Form(context.Context, Job) error
	// Write changes the model: first the sites, then the features.
	Write(context.Context, Job) (Written, error)
}

// Options are those that a target may not have.
type Options struct {
	Precision string
	CacheType string
	Scaled    bool // the caches have fixed scales
	Ring      bool // caches of fixed capacity are rings
}

// Job is a model and the plan for it.
type Job struct {
	Model    *onnx.Model
	Analysis *analysis.Analysis
	Plan     *plan.Plan
	Engine   *sharedengine.Engine

	Capacity   int64 // tokens of the buffers that the caches become; 0 leaves them growing
	Retyped    bool  // the caches become another type
	NoFallback bool  // the model gets no fallback
	Analysed   analysis.Options
}

// Written is the outcome of writing.
type Written struct {
	Fallback *fallback.Fallback // nil where nothing was replaced by the op, or none was asked for
	Warnings []string
}

// targets lists the targets, the default one first. A new target is one line here.
func targets() []Target {
	return []Target{
		{Name: "ops", Rotary: true, Angles: plan.ScaledAngles, Backend: &ops{}},
		{Name: "onnx", Angles: plan.OriginalAngles, Keeps: true, Backend: &plain{}},
		{Name: "contrib", Angles: plan.ScaledAngles, Backend: &contribOp{}},
	}
}

// Of returns a target by its name and setting, as "contrib:onnxruntime=1.22". "" is
// the default.
func Of(text string) (Target, error) {
	name, setting, more := strings.Cut(text, ":")
	for _, t := range targets() {
		if t.Name == cmp.Or(name, targets()[0].Name) && more == (setting != "") {
			t.setting = setting
			return t, nil
		}
	}
	return Target{}, unknown(text)
}

func unknown(text string) error {
	return fmt.Errorf("unknown target %q; expected %s", short.Name(text), strings.Join(Names(), " or "))
}

// Names lists the targets, the default one first.
func Names() (names []string) {
	for _, t := range targets() {
		names = append(names, t.Name)
	}
	return names
}

// Accepts refuses options that the target does not have.
func (t Target) Accepts(o Options) error {
	if _, has := t.Backend.(*ops); o.Ring && !has {
		return errors.New("ring=true (--kv) needs the op, since nothing else in a model says in which row of a ring a token is; leave --target out")
	}
	if _, has := t.Backend.(*contribOp); o.Scaled && !(has && o.CacheType == "int8") {
		return errors.New("--kv-scales is for --target contrib with caches of int8 (--kv growing:type=int8 or fixed:capacity=N,type=int8), because the op makes a scale for each token; drop --kv-scales")
	}
	return t.Backend.Accepts(t.setting, o)
}

// Text names the target for reports, "" for the default one.
func (t Target) Text() string {
	switch {
	case t.Name == targets()[0].Name:
		return ""
	case t.setting != "":
		return "target " + t.Name + ":" + t.setting
	}
	return "target " + t.Name
}

// features lets the features change the model.
func (j Job) features() error {
	for _, f := range j.Plan.Features {
		if err := f.Write(j.Model, j.Plan.Sites); err != nil {
			return &plan.LayerError{Layer: plan.WholeModel, Err: err}
		}
	}
	return nil
}
