package measure

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// headsTogether is how many heads are fed in one call, each in its own row of the batch.
// Feeding all at once would take memory with the square of their number.
const headsTogether = 64

// headMap returns, for each head of a branch's operand, which head of one of its
// boundaries it is computed from. It feeds one head at a time.
func headMap(ctx context.Context, l *eval.Loaded, b site.Branch, part int, in, to dim.Layout) ([]int64, error) {
	from := slices.Repeat([]int64{-1}, int(to.Heads))
	for first := int64(0); first < in.Heads; first += headsTogether {
		if err := someHeads(ctx, l, b, part, in, to, first, min(headsTogether, in.Heads-first), from); err != nil {
			return nil, err
		}
	}
	if h := slices.Index(from, -1); h >= 0 {
		return nil, fmt.Errorf("head %d comes from no head", h)
	}
	return from, nil
}

// someHeads fills in headMap's result for the count heads from first on.
func someHeads(ctx context.Context, l *eval.Loaded, b site.Branch, part int, in, to dim.Layout, first, count int64, from []int64) error {
	pt := dim.Point{B: count, L: 1, P: 1, S: 1}
	if !l.Table.Past {
		pt.P = 0
	}
	pt = l.Table.Within(pt)
	feeds := map[string]engine.Tensor{}
	for i, boundary := range b.Boundaries() {
		dims := dim.Evaluate(l.Table.Dims[boundary], pt)
		elements, err := bound.Elements(dims)
		if err != nil {
			return err
		}
		x := make([]float32, elements)
		for row := range count {
			for c := range in.Channels {
				if i == part {
					x[in.Index(dims, row, first+row, in.Rows.At(pt)-1, c)] = 1
				}
			}
		}
		feeds[boundary] = l.Piece.State(boundary, x, dims...)
	}
	if b.Past() != "" {
		past := dim.Evaluate(l.Table.Dims[b.Past()], pt)
		feeds[b.Past()] = engine.Float32s(make([]float32, engine.Elements(past)), past...)
	}
	result, err := l.Run(ctx, pt, feeds)
	if err != nil {
		return err
	}
	y := result[b.Operand]
	values := y.Values()
	last := to.Rows.At(pt) - 1 // the new token
	for h := range to.Heads {
		for row := range count {
			size := 0.0
			for c := range to.Channels {
				size += math.Abs(values[to.Index(y.Dims, row, h, last, c)])
			}
			if size == 0 {
				continue
			}
			if from[h] >= 0 {
				return fmt.Errorf("head %d comes from heads %d and %d", h, from[h], first+row)
			}
			from[h] = first + row
		}
	}
	return nil
}

// grouped returns an error for a head map that is not that of grouped-query attention:
// head h reads kv head h / (heads / kv heads), rounded down.
func grouped(from []int64, kvHeads int64) error {
	for h, source := range from {
		if want := int64(h) * kvHeads / int64(len(from)); source != want {
			return fmt.Errorf("query head %d reads kv head %d, expected %d", h, source, want)
		}
	}
	return nil
}

// repeatFactor returns the factor between a cached value and an operand. It returns an
// error where they differ in more than this factor and the repetition of heads.
func repeatFactor(ctx context.Context, l *eval.Loaded, cached, operand string, in, to dim.Layout) (float64, error) {
	pt := dim.Point{B: 2, L: 3, P: 4, S: 5}
	if !l.Table.Past {
		pt.P = 0
	}
	pt = l.Table.Within(pt)
	x, y, err := l.Random(ctx, pt, cached, operand, 1)
	if err != nil {
		return 0, err
	}
	given, values := x.Values(), y.Values()
	var dot, norm, worst float64
	each := func(f func(got, cached float64)) {
		for b := range pt.B {
			for h := range to.Heads {
				for r := range to.Rows.At(pt) {
					for c := range to.Channels {
						f(values[to.Index(y.Dims, b, h, r, c)], given[in.Index(x.Dims, b, h*in.Heads/to.Heads, r, c)])
					}
				}
			}
		}
	}
	each(func(got, cached float64) { dot += got * cached; norm += cached * cached })
	p := l.Piece.Precision()
	factor := ir.Snapped(dot/norm, p)
	slack := 32 * ir.Float32eps
	if p != rope.Float32 {
		slack = 4 * p.Epsilon()
	}
	each(func(got, cached float64) { worst = math.Max(worst, math.Abs(got-factor*cached)) })
	if !(worst <= slack*math.Abs(factor)) {
		return 0, fmt.Errorf("it is not the cache's content times one factor (%g, off by %g)", factor, worst)
	}
	return factor, nil
}

// keyRepeat returns the factor between cached keys and the operand of the scores MatMul.
func keyRepeat(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) (float64, error) {
	if s.Key.Cache == nil || s.Key.Behind {
		return 1, nil // the rotation is measured up to the operand
	}
	cached := s.Key.Cache.Present
	loaded, refusal := ev.Open(ctx, s.ScoresMatMul, "the path from the key cache to the scores", []string{s.Key.Operand}, []string{cached})
	if refusal != nil {
		return 0, refusal
	}
	defer loaded.Session.Close()
	in, err := keyCache(ev, s, ly)
	if err != nil {
		return 0, err
	}
	factor, err := repeatFactor(ctx, loaded, cached, s.Key.Operand, in, ly.KeyOperand)
	if err != nil {
		return 0, graph.Refuse(s.ScoresMatMul, "its key operand differs from the cache: %v", err)
	}
	return factor, nil
}

// keyCache returns the layout of the key cache.
func keyCache(ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) (dim.Layout, error) {
	dims := ev.Table.Dims[s.Key.Cache.Present]
	in, err := dim.LayoutOf(dims, ly.Key.Channels)
	if err != nil {
		return in, graph.Refuse(s.Key.Cache.Concat, "the key cache has an unexpected shape: %v", err)
	}
	if !in.Canonical() {
		return in, graph.Refuse(s.Key.Cache.Concat, "the key cache has the shape %v; expected [batch, heads, past + length, channels]", dims)
	}
	return in, nil
}

// checkValues refuses a site in which the value MatMul reads something else than the
// cached values with repeated heads, or in which heads of keys and values are not
// grouped as in grouped-query attention.
func checkValues(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) error {
	for _, v := range []struct {
		what   string
		branch site.Branch
		at     *onnx.Node
		in, to dim.Layout
	}{{"value", s.Value, s.ValueMatMul, ly.Value, ly.ValueUsed}, {"key", s.Key, s.ScoresMatMul, ly.Key, ly.KeyOperand}} {
		boundaries := v.branch.MeasuredFrom()
		if v.branch.Past() != "" {
			boundaries = append(boundaries, v.branch.Past())
		}
		loaded, refusal := ev.Open(ctx, v.at, "the path of its "+v.what, []string{v.branch.Operand}, boundaries)
		if refusal != nil {
			return refusal
		}
		for i, in := range v.in.Each() {
			from, err := headMap(ctx, loaded, v.branch, i, in, v.to)
			if err != nil {
				loaded.Session.Close()
				return graph.Refuse(v.at, "the heads of its %s are not those expected: %v", v.what, err)
			}
			if err := grouped(from, in.Heads); err != nil {
				loaded.Session.Close()
				return graph.Refuse(v.at, "the heads of its %s are not grouped as expected: %v", v.what, err)
			}
		}
		loaded.Session.Close()
		var start []string // after these values nothing may depend on the number of tokens
		switch {
		case v.branch.Behind: // the rotation ends at the operand
			continue
		case v.branch.Shared != nil:
			start = append(v.branch.Boundaries(), v.branch.Shared.Present)
		case v.branch.Cache != nil:
			start = []string{v.branch.Cache.Present}
		case v.what == "key": // without a cache the rotation ends at the operand
			continue
		default:
			start = v.branch.Boundaries()
		}
		if err := ev.Steady(ctx, v.at, "the path of its "+v.what, v.branch.Operand, start); err != nil {
			return err
		}
	}
	start, in := s.Value.Boundary, ly.Value
	if s.Value.Cache != nil {
		start = s.Value.Cache.Present
		var err error
		if in, err = dim.LayoutOf(ev.Table.Dims[start], ly.Value.Channels); err != nil {
			return graph.Refuse(s.Value.Cache.Concat, "the value cache has an unexpected shape: %v", err)
		}
		if !in.Canonical() {
			return graph.Refuse(s.Value.Cache.Concat, "the value cache has the shape %v; expected [batch, heads, past + length, channels]", ev.Table.Dims[start])
		}
	}
	loaded, refusal := ev.Open(ctx, s.ValueMatMul, "the path of its value", []string{s.Value.Operand}, []string{start})
	if refusal != nil {
		return refusal
	}
	defer loaded.Session.Close()
	factor, err := repeatFactor(ctx, loaded, start, s.Value.Operand, in, ly.ValueUsed)
	if err != nil {
		return graph.Refuse(s.ValueMatMul, "its value operand differs from the value: %v", err)
	}
	if math.Abs(factor-1) > 4*ir.Float32eps {
		return graph.Refuse(s.ValueMatMul, "its value is multiplied by %g", factor)
	}
	return nil
}

// rotationBehindCache measures the rotation of keys that are cached as they come and rotated
// when they are read, each by its place among all tokens. mask is the padding mask, nil where it is not known.
func rotationBehindCache(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts, mask *onnx.ValueInfo) (*rotation.Matrix, error) {
	at, cached := s.ScoresMatMul, s.Key.Cache.Present
	if ev.Table.Slots != nil || ev.Table.Static != (dim.Point{}) {
		return nil, graph.Refuse(at, "its keys are cached un-rotated, in a cache or a model of fixed size; expected a cache that grows")
	}
	before, _, err := branchRotation(ctx, ev, s.Key, at, "key", s.Key.Cached(), ly.Key, ly.KeyCached, mask)
	if err != nil {
		return nil, err
	}
	if e := before.Encoding; len(e.Frequencies) > 0 || before.Factors != nil || math.Abs(before.Factor-1) > 16*ir.Float32eps {
		return nil, graph.Refuse(at, "its key is changed before it is cached and again when it is read; expected only one of the two")
	}
	if _, err := keyCache(ev, s, ly); err != nil {
		return nil, err
	}
	if err := placesAlone(ctx, ev, s); err != nil {
		return nil, err
	}
	once := *ev // all tokens are new ones: so they are measured as in a model without a cache
	once.Table = ev.Table.InOneCall()
	layouts := map[string]dim.Layout{}
	for _, v := range []string{cached, s.Key.Operand} {
		if layouts[v], err = dim.LayoutOf(once.Table.Dims[v], ly.Key.Channels); err != nil {
			return nil, graph.Refuse(at, "%q has an unexpected shape: %v", short.Name(v), err)
		}
	}
	m, position, err := branchRotation(ctx, &once, site.Branch{Boundary: cached}, at, "key", s.Key.Operand, layouts[cached], layouts[s.Key.Operand], mask)
	switch {
	case err != nil:
		return nil, err
	case position.input != nil:
		return nil, graph.Refuse(at, "its cached keys are rotated by the input %q when they are read; expected their index", short.Name(position.input.Name))
	case position.computed != nil:
		return nil, graph.Refuse(at, "its cached keys are rotated by positions that the graph computes (%q) when they are read; expected their index", short.Name(position.computed.Value))
	case m.Order != nil:
		return nil, graph.Refuse(at, "its keys are cached un-rotated, and their channels are reordered when they are rotated; expected one order")
	}
	m.Order, m.AnyLength, m.Unread = before.Order, false, "its keys are rotated when they are read"
	return m, nil
}

// placesAlone checks that cached keys are rotated by their places among all tokens, wherever
// the call begins.
func placesAlone(ctx context.Context, ev *eval.Evaluator, s *site.Sized) error {
	at, what := s.ScoresMatMul, "the rotation of its cached keys"
	factors, _ := eval.SizeInputs(ev.Graph, s.Key.Operand, []string{s.Key.Cache.Present})
	if len(factors) == 0 {
		return nil
	}
	loaded, refusal := ev.Open(ctx, at, what, factors, nil)
	if refusal != nil {
		return refusal
	}
	defer loaded.Session.Close()
	for _, total := range []int64{2, 9, 300, 4_097, 65_537} {
		var first map[string]engine.Tensor
		for _, length := range []int64{1, 2, total/2 + 1, total} {
			results, err := loaded.Run(ctx, dim.Point{B: 1, L: length, P: total - length}, nil)
			if err != nil && first == nil {
				return nil // the end of a table: measured elsewhere
			}
			if err != nil {
				return graph.Refuse(at, "%s cannot be evaluated with %d of %d tokens cached: %v", what, total-length, total, err)
			}
			if first == nil {
				first = results
			}
			for _, v := range factors {
				if x, y := first[v], results[v]; !slices.Equal(x.Dims, y.Dims) || !bytes.Equal(x.Data, y.Data) {
					return graph.Refuse(at, "%s reads %q, which with %d tokens differs if %d of them are cached", what, short.Name(v), total, total-length)
				}
			}
		}
	}
	return nil
}
