package measure

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// unpack returns the layouts of a site in which one value holds several of query, key and
// value, with the heads of each. It finds them by feeding one head at a time.
func unpack(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) (*site.Layouts, error) {
	out := *ly
	holds := map[string]int{}
	for _, b := range []site.Branch{s.Query, s.Key, s.Value} {
		for _, boundary := range b.Boundaries() {
			holds[boundary]++
		}
	}
	for _, v := range []struct {
		what   string
		at     *onnx.Node
		branch site.Branch
		in     *dim.Layout
		to     dim.Layout
	}{
		{"query", s.ScoresMatMul, site.Branch{Boundary: s.Query.Boundary, Parts: s.Query.Parts, Scales: s.Query.Scales, Operand: s.Query.Operand}, &out.Query, ly.QueryOperand},
		{"key", s.ScoresMatMul, site.Branch{Boundary: s.Key.Boundary, Parts: s.Key.Parts, Scales: s.Key.Scales, Operand: s.Key.Cached()}, &out.Key, ly.KeyCached},
		{"value", s.ValueMatMul, site.Branch{Boundary: s.Value.Boundary, Operand: s.Value.Cached()}, &out.Value, ly.ValueCached},
	} {
		if v.in.Parts != nil { // each part is a value of its own
			for _, boundary := range v.branch.Boundaries() {
				if holds[boundary] > 1 {
					return nil, graph.Refuse(v.at, "the value %q holds a part of its %s and other values", short.Name(boundary), v.what)
				}
			}
			continue
		}
		if holds[v.branch.Boundary] == 1 {
			continue
		}
		if v.in.Is(dim.BatchHeadAxis, dim.RowAxis, dim.ChannelAxis) {
			return nil, graph.Refuse(v.at, "the value %q holds its %s and other values, with one dimension for batch and heads; expected two", short.Name(v.branch.Boundary), v.what)
		}
		if width := dim.Saturated(v.in.Heads, v.in.Channels); width > site.MaxWidth {
			return nil, graph.Refuse(v.at, "the value %q that holds its %s has %d channels, above the limit of %d", short.Name(v.branch.Boundary), v.what, width, site.MaxWidth)
		}
		loaded, refusal := ev.Open(ctx, v.at, "the path of its "+v.what, []string{v.branch.Operand}, v.branch.MeasuredFrom())
		if refusal != nil {
			return nil, refusal
		}
		from, err := headMap(ctx, loaded, v.branch, 0, *v.in, v.to)
		loaded.Session.Close()
		if err != nil {
			return nil, graph.Refuse(v.at, "the heads of its %s are not found in %q: %v", v.what, short.Name(v.branch.Boundary), err)
		}
		first, count := from[0], from[len(from)-1]-from[0]+1
		for h, source := range from {
			if want := first + int64(h)*count/int64(len(from)); source != want {
				return nil, graph.Refuse(v.at, "head %d of its %s is head %d of %q, expected %d", h, v.what, source, short.Name(v.branch.Boundary), want)
			}
		}
		v.in.All, v.in.First, v.in.Heads = v.in.Heads, first, count
	}
	return &out, nil
}
