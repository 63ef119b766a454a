package lower

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Written returns the binding of an op that an earlier rewrite put into the model: it
// keeps the inputs and outputs that do not depend on a method. positions is the value
// with positions that the op read before any method changed them, "" for indices. own says
// that the model itself has buffers of fixed size; lengths are the frequencies by length that it had
// before any edit.
func Written(n *onnx.Node, op customop.RotaryAttention, positions string, mask *onnx.ValueInfo, latent, own bool, lengths rope.LengthDependent) Binding {
	kept := customop.RotaryAttention{
		Query: op.Query, Key: op.Key, Value: op.Value, PastKey: op.PastKey, PastValue: op.PastValue,
		PositionIDs: positions, AttentionMask: op.AttentionMask,
		AttentionBias: op.AttentionBias, SinkLogits: op.SinkLogits, BiasBeforeSoftcap: op.BiasBeforeSoftcap,
		Output: op.Output, PresentKey: op.PresentKey, PresentValue: op.PresentValue, LogSumExp: op.LogSumExp,
		Precision: op.Precision,
	}
	binding := Binding{
		Name:  cmp.Or(n.Name, "rope_rewrite/"+op.Output),
		Query: op.Query, Key: op.Key, Value: op.Value,
		PastKey: op.PastKey, PastValue: op.PastValue,
		Output: op.Output, PresentKey: op.PresentKey, PresentValue: op.PresentValue,
		Mask:    mask,
		written: &kept,
	}
	if positions == "" {
		binding.ownLengths = lengths
	}
	if op.TotalLength != "" {
		kept.CacheLength, kept.TotalLength = op.CacheLength, op.TotalLength
		binding.LengthTracked = &fused.LengthTrackedCache{Last: op.CacheLength, Total: op.TotalLength}
	}
	if own {
		kept.CacheLength = op.CacheLength
		binding.Slots = &measure.Slots{}
	}
	if latent {
		binding.Latent = &measure.Latent{}
	}
	return binding
}

// WrittenRotary returns the binding of an op Rotary that an earlier rewrite put into the model.
func WrittenRotary(n *onnx.Node, op customop.Rotary) Binding {
	return Binding{Name: cmp.Or(n.Name, "rope_rewrite/"+op.RotatedQuery), Query: op.Query, Key: op.Key, turning: &turning{written: &op}}
}

// EncodingOf returns how an op rotates query and key; an op does not say how precise its model is.
func EncodingOf(op customop.RotaryAttention, precision rope.Precision) rope.Encoding {
	e := rope.Encoding{
		Frequencies: wide(op.Frequencies), Gain: float64(op.Gain), Offset: int(op.RotaryOffset), ExactAngles: op.ExactAngles == 1, Precision: precision,
		LengthDependent: rope.LengthDependent{Trained: op.TrainedLength, Long: wide(op.LongFrequencies), NTK: float64(op.DynamicNtk), Linear: op.DynamicLinear == 1},
	}
	if op.RotaryLayout == "interleaved" {
		e.Layout = rope.Interleaved
	}
	for _, axis := range op.PositionAxes {
		e.Axes = append(e.Axes, int(axis))
	}
	return e
}

// Value returns the attention that an op computes: the inverse of Nodes, as far as its
// attributes say it. The size of a head is not among them, and positions that are drawn
// are an input. original gives both, and the sinks.
func Value(op customop.RotaryAttention, original rope.Attention) (rope.Attention, error) {
	a := rope.Attention{
		Heads: int(op.NumHeads), KVHeads: int(op.KVNumHeads), HeadSize: original.HeadSize,
		Scale: float64(op.Scale), Softcap: float64(op.Softcap), Sinks: original.Sinks,
		QueryFactors: wide(op.QueryFactors), KeyFactors: wide(op.KeyFactors),
		Chunk: op.BandChunk, Cross: op.Cross == 1,
		Distance: distanceOf(op),
		Encoding: EncodingOf(op, original.Encoding.Precision),
		Mask: rope.Mask{
			Causal: op.Causal == 1, Window: op.Window, FirstKeys: op.FirstKeys, Padding: op.AttentionMask != "", Bias: op.AttentionBias != "" || op.BiasBeforeSoftcap != "",
			Restart: op.DocumentRestart == 1, Start: op.DocumentStart,
		},
	}
	if op.Cache == "raw" {
		a.Cache = rope.Raw
	}
	if op.DocumentIDs != "" {
		a.Mask.Documents = rope.IntraDocument
		if op.DocumentMask == "anchor" {
			a.Mask.Documents = rope.AnchorDocument
		}
	}
	if t := op.Temperature; len(t) == 4 {
		a.Temperature = rope.Temperature{Offset: float64(t[0]), Slope: float64(t[1]), Start: float64(t[2]), Group: int64(t[3])}
	}
	for i, start := range op.BandStarts {
		band := rope.Band{Start: start, QueryScale: 1, KeyScale: 1}
		for _, of := range []struct {
			list []float32
			to   *float64
		}{{op.BandQueryScales, &band.QueryScale}, {op.BandQueryOffsets, &band.QueryOffset}, {op.BandKeyScales, &band.KeyScale}, {op.BandQueryLimits, &band.QueryLimit}} {
			if of.list != nil {
				*of.to = float64(of.list[i])
			}
		}
		if op.BandGroups != nil {
			band.Group = op.BandGroups[i]
		}
		a.Bands = append(a.Bands, band)
	}
	return a, sameSite(a, original)
}

// distanceOf returns the bias by distance of an op.
func distanceOf(op customop.RotaryAttention) rope.Distance {
	d := rope.Distance{Slopes: wide(op.DistanceSlopes), Starts: slices.Clone(op.DistanceStarts), Shown: op.DistanceShown == 1}
	for list := range slices.Chunk(wide(op.DistanceBiases), int(max(op.NumHeads, 1))) {
		d.Biases = append(d.Biases, list)
	}
	return d
}

// sameSite refuses an op that cannot be what the record says of its site.
func sameSite(now, original rope.Attention) error {
	e, o := now.Encoding, original.Encoding
	if original.HeadSize == 0 {
		return nil // nothing is known of it
	}
	if now.Heads != original.Heads || now.KVHeads != original.KVHeads || len(e.Frequencies) != len(o.Frequencies) || e.Layout != o.Layout || !slices.Equal(e.Axes, o.Axes) || !slices.Equal(now.Distance.Starts, original.Distance.Starts) || len(now.Distance.Slopes) != len(original.Distance.Slopes) || e.Offset != o.Offset || now.Mask.Padding != original.Mask.Padding || now.Cross != original.Cross {
		return fmt.Errorf("the node is not the one that the model's record describes (%d heads, %d for keys, %d rotated channels; the record has %d, %d and %d)",
			now.Heads, now.KVHeads, e.RotaryDim(), original.Heads, original.KVHeads, o.RotaryDim())
	}
	return nil
}

func wide(list []float32) []float64 {
	if len(list) == 0 {
		return nil
	}
	out := slices.Grow([]float64(nil), len(list))
	for _, x := range list {
		out = append(out, float64(x))
	}
	return out
}

// Positions returns the value with positions that the op reads where no method changes
// them, "" where positions are indices.
func (binding Binding) Positions() string {
	switch {
	case binding.written != nil:
		return binding.written.PositionIDs
	case binding.turning != nil && binding.turning.written != nil:
		return binding.turning.written.PositionIDs
	}
	return binding.positions(&ir.Builder{Stem: binding.Name})
}

// positions writes the model's own positions, int64 [batch or 1, length]; "" where positions
// are indices.
func (binding Binding) positions(b *ir.Builder) string {
	if binding.Computed != nil {
		return computedPositions(b, binding)
	}
	if binding.Position == nil {
		return ""
	}
	at := b.Int64s(binding.Position)
	if len(binding.Position.Shape) == 1 {
		at = b.AddAs("position_row", "Reshape", []string{at, b.Constant("one_row", 1, -1)})
	}
	if binding.ownLengths.Trained > 0 && binding.Mask != nil {
		return byRealTokens(b, binding, at)
	}
	return at
}
