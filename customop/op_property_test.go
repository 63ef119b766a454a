package customop_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// drawn is any small problem that the op promises to solve.
func drawn(t *rapid.T) ref.Problem {
	number := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }

	kvHeads := number("kv heads", 1, 3)
	a := rope.Attention{KVHeads: kvHeads, Heads: kvHeads * number("group", 1, 4), HeadSize: number("head size", 1, 70)}
	if yes("scaled") {
		a.Scale = rapid.Float64Range(0.01, 1).Draw(t, "scale")
		a.Scale = float64(float32(a.Scale))
	}
	pairs := number("pairs", 0, a.HeadSize/2)
	a.Encoding = rope.Encoding{
		Offset:      number("offset", 0, a.HeadSize-2*pairs),
		Layout:      rapid.SampledFrom([]rope.Layout{rope.Half, rope.Interleaved}).Draw(t, "layout"),
		ExactAngles: yes("exact angles"),
	}
	if pairs > 0 {
		a.Encoding.Frequencies = frequencies(2*pairs, rapid.SampledFrom([]float64{100, 10000, 1e6}).Draw(t, "theta"))
	}
	a.Mask.Causal = yes("causal")
	if yes("windowed") {
		a.Mask.Window = int64(number("window", 1, 80))
		a.Mask.FirstKeys = int64(rapid.SampledFrom([]int{0, 1, 4, 70, 200}).Draw(t, "first keys"))
	}
	if yes("capped") {
		a.Softcap = rapid.SampledFrom([]float64{0.5, 2, 30}).Draw(t, "softcap")
	}
	if yes("sunk") {
		for range a.Heads {
			a.Sinks = append(a.Sinks, float64(number("sink", -4, 4)))
		}
	}
	p := problem(a, number("batch", 1, 3), number("length", 1, 70), number("past", 0, 70))
	p.ValueSize = number("value size", 1, 70)
	if a.Mask.Causal && yes("banded") {
		shift := int64(number("shift", 1, 60))
		p.Attention.Bands = stringBands(shift, rapid.Int64Range(0, shift).Draw(t, "near"))
	}
	switch rapid.SampledFrom([]string{"index", "offset", "left padding", "holes"}).Draw(t, "positions") {
	case "offset":
		p = from(p, int64(number("first", 0, 131000)), int64(number("second", 0, 131000)))
	case "left padding":
		p = leftPadded(p, number("padding", 0, p.Past+p.Length), number("padding", 0, p.Past+p.Length))
	case "holes":
		p = holes(p, rapid.Uint64().Draw(t, "mask seed"))
	}
	if yes("documents") {
		p = withDocuments(t, p)
	}
	if yes("bias") {
		p.Bias = biases(p, rapid.Uint64().Draw(t, "bias seed"), number("bias hides", 0, 4))
	}
	if yes("bias before") {
		p.BiasBeforeSoftcap = biases(p, rapid.Uint64().Draw(t, "bias seed"), number("bias hides", 0, 4))
	}
	return p
}

// withDocuments gives the tokens any ids in any order.
func withDocuments(t *rapid.T, p ref.Problem) ref.Problem {
	rule := rapid.SampledFrom([]rope.Documents{rope.IntraDocument, rope.AnchorDocument})
	p.Attention.Mask.Documents = rule.Draw(t, "document mask")
	if len(p.Attention.Bands) == 0 && rapid.Bool().Draw(t, "restart") {
		p.Attention.Mask.Restart, p.Attention.Mask.Start = true, rapid.Int64Range(0, 9).Draw(t, "start")
	}
	ids := rapid.SliceOfN(rapid.Int64Range(-1, 5), 1, 6).Draw(t, "ids")
	return scattered(p, rapid.Uint64().Draw(t, "document seed"), rapid.IntRange(1, 30).Draw(t, "change every"), ids...)
}

func TestAgainstReferenceAnywhere(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		settle(t, drawn(t), rapid.Bool().Draw(t, "flat"))
	})
}
