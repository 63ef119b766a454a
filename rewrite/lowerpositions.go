package rewrite

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
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
	if slices.ContainsFunc(a.Bands, func(b rope.Band) bool { return b.QueryLimit != 0 }) {
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
