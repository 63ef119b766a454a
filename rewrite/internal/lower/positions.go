package lower

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// lowerPositions sets the position map and the temperature. Attributes that older libraries of the op do not know are left
// out where they have their default.
func lowerPositions(op *customop.RotaryAttention, a rope.Attention) {
	for _, band := range a.Bands {
		op.BandStarts = append(op.BandStarts, band.Start)
		op.BandQueryScales = append(op.BandQueryScales, float32(band.QueryScale))
		op.BandQueryOffsets = append(op.BandQueryOffsets, float32(band.QueryOffset))
		op.BandKeyScales = append(op.BandKeyScales, float32(band.KeyScale))
	}
	if limited(a.Bands) {
		for _, band := range a.Bands {
			op.BandQueryLimits = append(op.BandQueryLimits, float32(band.QueryLimit))
		}
	}
	if slices.ContainsFunc(a.Bands, func(b rope.Band) bool { return b.Group > 1 }) {
		for _, band := range a.Bands {
			op.BandGroups = append(op.BandGroups, max(1, band.Group))
		}
	}
	op.BandChunk = a.Chunk
	if t := a.Temperature; t != (rope.Temperature{}) {
		op.Temperature = []float32{float32(t.Offset), float32(t.Slope), float32(t.Start), float32(max(1, t.Group))}
	}
}

// limited reports whether a band limits the position of queries. Such a limit counts from
// the beginning of the text, whatever position its first token has.
func limited(bands []rope.Band) bool {
	return slices.ContainsFunc(bands, func(b rope.Band) bool { return b.QueryLimit != 0 })
}

// ofDistances reports whether an attention has a map of distances: nothing in it depends on where a text begins.
func ofDistances(a rope.Attention) bool {
	absolute := func(b rope.Band) bool { return b.QueryScale != b.KeyScale || b.QueryLimit != 0 || b.Group > 1 }
	return len(a.Bands) > 1 && !slices.ContainsFunc(a.Bands, absolute) && a.Chunk == 0 && a.Temperature == (rope.Temperature{}) &&
		a.Drawn.Range == 0 && a.Encoding.LengthDependent.Trained == 0
}

// computedPositions gives positions that the graph computes itself as int64 [batch or 1, length].
// The nodes are named after their value, so all sites that read it share them.
func computedPositions(b *ir.Builder, binding Binding) string {
	c := binding.Computed
	shared := &ir.Builder{Stem: "rope_rewrite/" + c.Value}
	at := c.Value
	if c.Type != onnx.Int64 {
		at = shared.AddAs("as_int64", "Cast", []string{at}, onnx.IntAttr("to", int64(onnx.Int64)))
	}
	if len(c.Dims) != 2 {
		first := int64(1)
		if c.Dims[0] == dim.BatchExtent {
			first = 0 // as many as there are
		}
		at = shared.AddAs("as_rows", "Reshape", []string{at, shared.Constant("rows", first, -1)})
	}
	if c.OfAll() {
		rows := int64(slices.Index(binding.QueryLayout.Axes, dim.RowAxis))
		dims := shared.AddAs("query_dims", "Shape", []string{binding.Query})
		length := shared.AddAs("length", "Slice", []string{dims, shared.Constant("length_from", rows), shared.Constant("length_to", rows+1)})
		from := shared.AddAs("from", "Neg", []string{length})
		at = shared.AddAs("of_new", "Slice", []string{at, from, shared.Constant("to", math.MaxInt64), shared.Constant("axis", 1)})
	}
	b.Nodes, b.Constants = append(b.Nodes, shared.Nodes...), append(b.Constants, shared.Constants...)
	return at
}

// fromFirstReal computes positions for a query [batch, heads, length, channels] by indices. They count from each row's first token that the mask
// [batch, total] shows. pasts is the number of cached tokens of each row, "" where all
// rows have the same.
func fromFirstReal(b *ir.Builder, mask, query, pasts string) string {
	first := b.AddAs("position_first", "ArgMax", []string{Real(b, mask)}, onnx.IntAttr("axis", 1), onnx.IntAttr("keepdims", 1))
	length := b.NamedSize("position_length", query, 2)
	places := b.AddAs("position_places", "Range", []string{b.Scalar("position_from_zero", 0), length, b.Scalar("position_step", 1)})
	var past string
	if pasts != "" {
		wide := b.AddAs("position_pasts", "Cast", []string{pasts}, onnx.IntAttr("to", int64(onnx.Int64)))
		past = b.AddAs("position_past", "Reshape", []string{wide, b.Constant("position_column", -1, 1)})
	} else {
		past = b.AddAs("position_past", "Sub", []string{b.NamedSize("position_total", mask, 1), length})
	}
	from := b.AddAs("position_from", "Sub", []string{past, first})
	return b.AddAs("positions", "Add", []string{from, places})
}

// Real computes, from a padding mask of integers, int64 1 for tokens that it shows and 0
// for those that it hides.
func Real(b *ir.Builder, mask string) string {
	shown := b.AddAs("mask_shown", "Cast", []string{mask}, onnx.IntAttr("to", int64(onnx.Bool)))
	return b.AddAs("mask_real", "Cast", []string{shown}, onnx.IntAttr("to", int64(onnx.Int64)))
}

// ErrCachedDraw says that random positions cannot go with a cache.
var ErrCachedDraw = errors.New("positions randomized needs whole texts in one call, but the model caches keys for later calls, which would draw other positions; export it without a cache (use_cache=False)")

// drawnPositions computes random positions for the tokens of a query [batch, heads,
// length, channels]: the first length ones of a fixed random order, sorted. Where the
// model has positions, they are the indices into these. The run ends with an error where
// there are more tokens than positions to draw, or an index is out of range.
func drawnPositions(b *ir.Builder, d rope.Drawn, query, positions string) string {
	order := fmt.Sprintf("rope_rewrite/drawn_order_%d_%d", d.Range, d.Seed)
	b.Constants = append(b.Constants, ir.Int64Tensor(order, []int64{d.Range}, d.Order()...))
	dims := b.AddAs("drawn_dims", "Shape", []string{query})
	length := b.AddAs("drawn_length", "Slice", []string{dims, b.Constant("drawn_from", 2), b.Constant("drawn_to", 3)})
	first := b.AddAs("drawn_first", "Slice", []string{order, b.Constant("drawn_begin", 0), length})
	sorted := onnx.NewNode("TopK", []string{first, length}, []string{b.Value("drawn_sorted"), b.Value("drawn_places")}, onnx.IntAttr("largest", 0))
	sorted.Name = sorted.Outputs[0]
	b.Nodes = append(b.Nodes, sorted)
	if positions == "" {
		return b.AddAs("drawn", "Reshape", []string{sorted.Outputs[0], b.Constant("drawn_shape", 1, -1)})
	}
	return b.AddAs("drawn", "Gather", []string{sorted.Outputs[0], positions})
}
