package main

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// mostMeasured are the bytes of a model that is run to measure what smaller caches cost it. A larger one might not fit
// into memory, of which a rewrite needs little.
const mostMeasured = 2 << 30

// checkCacheCost refuses caches of int8 that would cost a model more than they should. Where that could not be
// measured, the report gets a warning that says why.
func checkCacheCost(ctx context.Context, path string, opts rewrite.Options, report *rewrite.Report) error {
	if opts.Cache.Type != "int8" || opts.Cache.Scales != nil {
		return nil
	}
	warn := func(format string, args ...any) {
		report.Warnings = append(report.Warnings, fmt.Sprintf("what caches of int8 cost this model was not measured"+format, args...))
	}
	size, err := bytesOf(path)
	if err != nil {
		return err
	}
	if size > mostMeasured {
		warn(", because it is large; rope-rewrite validate measures it")
		return nil
	}
	if opts, err = opts.FindLibraries(); err != nil {
		return err
	}
	cost, err := validate.CacheCost(ctx, path, onnx.Int8, opts.Evaluation)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		warn(" (%v)", err)
	case cost.KL > validate.CostlyKL:
		err = fmt.Errorf("caches of int8 would cost this model %.2g nats a token, more than the %g that are usual at most. Some channels of its keys are much larger than others; use type=float16", cost.KL, validate.CostlyKL)
		return &rewrite.EditError{Layer: rewrite.WholeModel, What: "kv", Given: "type=int8", Err: err}
	}
	return nil
}

// bytesOf is the size of a model's weights.
func bytesOf(path string) (size int64, err error) {
	m, err := onnx.Open(path)
	if err != nil {
		return 0, err
	}
	defer m.Close()
	for _, t := range m.Graph.Initializers {
		n := int64(t.Type.Size())
		for _, d := range t.Dims {
			n *= d
		}
		size += n
	}
	return size, nil
}
