package customop_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Position maps that place keys elsewhere than at their own positions.
func rawMaps() map[string]rope.Attention {
	raw := func(bands ...rope.Band) rope.Attention {
		return with(attention(4, 2, 32), func(a *rope.Attention) { a.Cache, a.Bands = rope.Raw, bands })
	}
	near := rope.Band{QueryScale: 1, KeyScale: 1}
	chunked := raw(
		rope.Band{QueryScale: 1, KeyScale: 1},
		rope.Band{Start: 1, QueryScale: 1, QueryOffset: 24, KeyScale: 1, QueryLimit: 30},
		rope.Band{Start: 2, QueryOffset: 30, KeyScale: 1},
	)
	chunked.Chunk = 24
	return map[string]rope.Attention{
		"plain":       raw(),
		"string":      raw(stringBands(40, 9)...),
		"rerope":      raw(near, rope.Band{Start: 17, QueryOffset: 17}),
		"leaky":       raw(near, rope.Band{Start: 17, QueryScale: 0.125, QueryOffset: 14.875, KeyScale: 0.125}),
		"self-extend": raw(near, rope.Band{Start: 17, QueryScale: 1, QueryOffset: 13, KeyScale: 1, Group: 4}),
		"chunks":      chunked,
	}
}

func TestRawCacheAgainstReference(t *testing.T) {
	for name, a := range rawMaps() {
		for call, p := range map[string]ref.Problem{
			"prefill":     problem(a, 3, 131, 0),
			"decode":      problem(a, 3, 1, 131),
			"chunk":       problem(a, 1, 50, 31),
			"long":        problem(a, 1, 400, 300),
			"shifted":     from(problem(a, 3, 100, 0), 5000, 0, 131071-99),
			"padded":      leftPadded(problem(a, 3, 100, 0), 0, 13, 90),
			"padded 1":    leftPadded(problem(a, 3, 1, 99), 0, 13, 99),
			"holes":       holes(problem(a, 3, 100, 17), 8),
			"window":      problem(with(a, func(a *rope.Attention) { a.Mask.Window = 60 }), 1, 131, 10),
			"first keys":  problem(with(a, func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 30, 3 }), 1, 131, 10),
			"interleaved": problem(with(a, func(a *rope.Attention) { a.Encoding.Layout = rope.Interleaved }), 1, 90, 10),
			"exact":       from(problem(with(a, func(a *rope.Attention) { a.Encoding.ExactAngles = true }), 1, 100, 0), 131071-99),
			"softcap":     problem(with(a, func(a *rope.Attention) { a.Softcap = 2 }), 1, 90, 10),
		} {
			t.Run(name+", "+call, func(t *testing.T) { settle(t, p, false) })
		}
	}
}

// A temperature by the query's position, with a rotated cache and a raw one.
func TestTemperature(t *testing.T) {
	for name, temperature := range map[string]rope.Temperature{
		"log-n":   {Slope: float64(float32(1 / 4.0))},
		"stepped": {Offset: 1, Slope: float64(float32(0.1)), Start: 1, Group: 8},
	} {
		for _, cache := range []rope.Cache{rope.Rotated, rope.Raw} {
			a := with(attention(4, 2, 32), func(a *rope.Attention) { a.Temperature, a.Cache = temperature, cache })
			for call, p := range map[string]ref.Problem{
				"prefill": problem(a, 2, 131, 0),
				"decode":  problem(a, 2, 1, 300),
				"padded":  leftPadded(problem(a, 3, 100, 0), 0, 13, 90),
				"softcap": problem(with(a, func(a *rope.Attention) { a.Softcap = 2 }), 1, 90, 10),
				"scale":   problem(with(a, func(a *rope.Attention) { a.Scale = -0.3 }), 1, 90, 10),
			} {
				t.Run(name+", "+call, func(t *testing.T) { settle(t, p, false) })
			}
		}
	}
}

func TestRawChunksAreTheWhole(t *testing.T) {
	for name, a := range rawMaps() {
		t.Run(name, func(t *testing.T) {
			chunksAreTheWhole(t, leftPadded(problem(a, 2, 90, 0), 11, 0))
		})
	}
}

// drawnBands are any bands at all.
func drawnBands(t *rapid.T) []rope.Band {
	var bands []rope.Band
	start := int64(0)
	for range rapid.IntRange(1, 4).Draw(t, "bands") {
		bands = append(bands, rope.Band{
			Start:       start,
			QueryScale:  rapid.SampledFrom([]float64{0, 0.25, 1}).Draw(t, "query scale"),
			QueryOffset: float64(rapid.IntRange(0, 40).Draw(t, "query offset")),
			QueryLimit:  float64(rapid.IntRange(0, 60).Draw(t, "query limit")),
			KeyScale:    rapid.SampledFrom([]float64{0, 0.25, 1}).Draw(t, "key scale"),
			Group:       rapid.Int64Range(0, 5).Draw(t, "group"),
		})
		start += rapid.Int64Range(1, 40).Draw(t, "width")
	}
	return bands
}

func TestRawCacheAnywhere(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		if p.Attention.Mask.Restart {
			p.Attention.Mask.Restart, p.Attention.Mask.Start = false, 0
		}
		p.Attention.Cache = rope.Raw
		if p.Attention.Mask.Causal {
			p.Attention.Bands = drawnBands(t)
			p.Attention.Chunk = int64(rapid.SampledFrom([]int{0, 0, 1, 7, 30}).Draw(t, "chunk"))
		}
		settle(t, p, rapid.Bool().Draw(t, "flat"))
	})
}
