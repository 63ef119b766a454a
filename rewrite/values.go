package rewrite

import (
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/backend"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/calls"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
)

// values are what the stages of a request make, each of those before it. What was not reached is nil.
type values struct {
	source   *source
	analysis *analysis.Analysis
	plan     *plan.Plan
	result   *result
}

// source is a copy of the model, ready to be looked at and changed.
type source struct {
	model    *onnx.Model
	raised   *opset.Raised // nil where the version of its operators stays
	calls    *calls.Inlined
	warnings []string
	unseen   error // why the model's own functions are not looked into
}

// result is what came of writing.
type result struct {
	backend.Written
	record *provenance.Record // nil where nothing was done
}
