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

// values are what the stages of a request make, each from the earlier ones. Stages not reached are nil.
type values struct {
	source   *source
	analysis *analysis.Analysis
	plan     *plan.Plan
	result   *result
	proving  *provenance.Runtime // what sites were proven with, where that was asked for
}

// source is a copy of the model, ready for the analysis and for changes.
type source struct {
	model    *onnx.Model
	raised   *opset.Raised // nil where its opset is unchanged
	calls    *calls.Inlined
	warnings []string
	unseen   error // why the model's own functions are not looked into
}

// result is the outcome of writing.
type result struct {
	backend.Written
	record *provenance.Record // nil where nothing was done
}
