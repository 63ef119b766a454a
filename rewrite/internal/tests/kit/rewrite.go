package kit

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testengine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// memory remembers what the tests of a package evaluated.
var memory = testengine.New(1 << 30)

// Rewrite is rewrite.Rewrite by an engine that evaluates no piece of a model twice, unless a worker is
// asked for. A fault of the rewriter ends the test with a panic.
func Rewrite(ctx context.Context, m *onnx.Model, opts rewrite.Options) (*rewrite.Report, error) {
	if len(opts.Evaluation.Worker) == 0 {
		ctx = engine.WithOpener(ctx, func(c engine.Config) (engine.Engine, error) {
			return memory.Open(c, local)
		})
	}
	report, err := rewrite.Rewrite(ctx, m, opts)
	if fault := (*rewrite.FaultError)(nil); errors.As(err, &fault) {
		panic(fmt.Sprintf("%v\n%s", err, fault.Stack))
	}
	if report != nil {
		for _, site := range report.Sites {
			if subjectless.MatchString(site.Reason) {
				panic(fmt.Sprintf("the reason of layer %d has a sentence without a subject: %s", site.Layer, site.Reason))
			}
		}
	}
	return report, err
}

// subjectless are reasons of which a sentence begins with a word for something that was not named.
var subjectless = regexp.MustCompile(`(^|unchanged: |cannot be [^:]*: )(it|they) `)

func local(c engine.Config) (engine.Engine, error) { return engine.NewLocal(c) }
