package rewrite

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fallback"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
)

// ErrOtherFallback says that a fallback computes something else than its op.
var ErrOtherFallback = fallback.ErrOff

// UnknownFallback lists the fallback's functions in m that no version of rope-rewrite is known to
// have written, and runs each in place of a single op, on at most 64 tokens: never the whole model. The
// error wraps ErrOtherFallback where one computes something else; others say why one could not be run.
func UnknownFallback(ctx context.Context, m *onnx.Model, opts Options) (unknown []string, err error) {
	functions := definition.Unknown(m)
	for _, f := range functions {
		unknown = append(unknown, f.Name)
	}
	if functions == nil {
		return nil, nil
	}
	if opts, err = opts.FindLibraries(); err != nil {
		return unknown, err
	}
	o := opts.Evaluation
	eng := &sharedengine.Engine{Runtime: o.Runtime, Library: o.Library, Worker: o.Worker, Memory: o.Memory}
	defer eng.Close()
	limited, end := eng.Limited(ctx)
	defer end()
	return unknown, fallback.Agree(limited, m, functions, eng)
}
