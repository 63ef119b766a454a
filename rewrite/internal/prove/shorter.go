package prove

import (
	"context"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
)

// shorter returns a trial with as many new tokens as ONNX Runtime runs the original with, and
// whether there are at least two: its tables may have fewer rows than a call has tokens.
func (c *comparison) shorter(ctx context.Context, t trial) (trial, bool, error) {
	runs := func(length int64) (bool, error) {
		some := t
		some.pt.L = length
		feeds, _ := trialFeeds(c.evaluator, c.rng, c.site, c.measured, some)
		_, err := c.original.Run(ctx, sizes(c.evaluator, some), cast(c.original, feeds))
		if bisect.Ended(err) || ctx.Err() != nil {
			return false, graph.Refuse(c.site.Softmax, "the original does not run with %v: %v", some.pt, err)
		}
		return err == nil, nil
	}
	if t.lengths != nil || t.pt.L < 3 || c.measured.Static.L > 0 {
		return t, false, nil
	}
	if ok, err := runs(2); err != nil || !ok {
		return t, false, err
	}
	most, err := bisect.Largest(2, t.pt.L, runs)
	t.pt.L = most
	return t, err == nil, err
}

// plainly says what a message of ONNX Runtime means, where its words do not.
func plainly(err error) string {
	if text := err.Error(); !strings.Contains(text, "Updating cos_cache and sin_cache in RotaryEmbedding") {
		return text
	}
	return "its RotaryEmbedding takes at most as many tokens in a call as its tables of cosines have rows. Export longer tables, or split a long text into several calls"
}
