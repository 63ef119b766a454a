package rewrite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// lowerPositions writes the position map, the temperature, and frequencies that
// depend on how far a call reaches. Attributes that
// older libraries do not know are left out where they say nothing.
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
	r := a.Encoding.Reach
	op.TrainedLength, op.DynamicNtk = r.Trained, float32(r.NTK)
	if r.Linear {
		op.DynamicLinear = 1
	}
	for _, f := range r.Long {
		op.LongFrequencies = append(op.LongFrequencies, float32(f))
	}
}

// limited reports whether a band holds queries at a position, which counts from
// the text's beginning.
func limited(bands []rope.Band) bool {
	return slices.ContainsFunc(bands, func(b rope.Band) bool { return b.QueryLimit != 0 })
}

// fromFirstReal makes positions of a query [batch, heads, length, channels] that
// count from each row's first token which the mask [batch, total] shows, where
// the model goes by index. With the past of each row the mask may be wider.
func (b *builder) fromFirstReal(mask, query, pasts string) string {
	first := b.add("ArgMax", []string{b.real(mask)}, b.value("position_first"), onnx.IntAttr("axis", 1), onnx.IntAttr("keepdims", 1))
	length := b.size(query, 2, "position_length")
	places := b.add("Range", []string{b.scalar("position_from_zero", 0), length, b.scalar("position_step", 1)}, b.value("position_places"))
	var past string
	if pasts != "" {
		wide := b.add("Cast", []string{pasts}, b.value("position_pasts"), onnx.IntAttr("to", int64(onnx.Int64)))
		past = b.add("Reshape", []string{wide, b.constant("position_column", -1, 1)}, b.value("position_past"))
	} else {
		past = b.add("Sub", []string{b.size(mask, 1, "position_total"), length}, b.value("position_past"))
	}
	from := b.add("Sub", []string{past, first}, b.value("position_from"))
	return b.add("Add", []string{from, places}, b.value("positions"))
}

// real makes 1 of what a mask of integers shows and 0 of what it hides.
func (b *builder) real(mask string) string {
	shown := b.add("Cast", []string{mask}, b.value("mask_shown"), onnx.IntAttr("to", int64(onnx.Bool)))
	return b.add("Cast", []string{shown}, b.value("mask_real"), onnx.IntAttr("to", int64(onnx.Int64)))
}

var errCachedDraw = errors.New("positions randomized is for whole texts in one call, and the model keeps keys for later calls, which would draw other positions; export it without a cache (use_cache=False)")

// drawn makes the positions at which the tokens of a query [batch, heads,
// length, channels] stand: the first length ones of the order, sorted, and of
// these the ones that the given positions count. More tokens than positions, or
// a position that is no token's, end the run with an error.
func (b *builder) drawn(d rope.Drawn, query, positions string) string {
	order := fmt.Sprintf("rope_rewrite/drawn_order_%d_%d", d.Range, d.Seed)
	b.constants = append(b.constants, int64Tensor(order, []int64{d.Range}, d.Order()...))
	dims := b.add("Shape", []string{query}, b.value("drawn_dims"))
	length := b.add("Slice", []string{dims, b.constant("drawn_from", 2), b.constant("drawn_to", 3)}, b.value("drawn_length"))
	first := b.add("Slice", []string{order, b.constant("drawn_begin", 0), length}, b.value("drawn_first"))
	sorted := onnx.NewNode("TopK", []string{first, length}, []string{b.value("drawn_sorted"), b.value("drawn_places")}, onnx.IntAttr("largest", 0))
	sorted.Name = sorted.Outputs[0]
	b.nodes = append(b.nodes, sorted)
	if positions == "" {
		return b.add("Reshape", []string{sorted.Outputs[0], b.constant("drawn_shape", 1, -1)}, b.value("drawn"))
	}
	return b.add("Gather", []string{sorted.Outputs[0], positions}, b.value("drawn"))
}
