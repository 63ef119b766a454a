package customop_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
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
	for name, a := range testsample.OfMap(t, rawMaps(), 2) {
		for call, p := range map[string]ref.Problem{
			"prefill":            problem(a, 3, 131, 0),
			"decode":             problem(a, 3, 1, 131),
			"chunk":              problem(a, 1, 50, 31),
			"long":               problem(a, 1, 400, 300),
			"shifted":            from(problem(a, 3, 100, 0), 5000, 0, 131071-99),
			"padded":             leftPadded(problem(a, 3, 100, 0), 0, 13, 90),
			"padded 1":           leftPadded(problem(a, 3, 1, 99), 0, 13, 99),
			"holes":              holes(problem(a, 3, 100, 17), 8),
			"window":             problem(with(a, func(a *rope.Attention) { a.Mask.Window = 60 }), 1, 131, 10),
			"first keys":         problem(with(a, func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 30, 3 }), 1, 131, 10),
			"first keys, padded": leftPadded(problem(with(a, func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 30, 3 }), 2, 100, 0), 13, 60),
			"interleaved":        problem(with(a, func(a *rope.Attention) { a.Encoding.Layout = rope.Interleaved }), 1, 90, 10),
			"exact":              from(problem(with(a, func(a *rope.Attention) { a.Encoding.ExactAngles = true }), 1, 100, 0), 131071-99),
			"softcap":            problem(with(a, func(a *rope.Attention) { a.Softcap = 2 }), 1, 90, 10),
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

// rawly draws a raw cache and a map over it.
func rawly(t *rapid.T, p ref.Problem) ref.Problem {
	p.Attention.Mask.Restart, p.Attention.Mask.Start = false, 0
	p.Attention.Cache = rope.Raw
	if p.Attention.Mask.Causal {
		p.Attention.Bands = drawnBands(t)
		p.Attention.Chunk = int64(rapid.SampledFrom([]int{0, 0, 1, 7, 30}).Draw(t, "chunk"))
	}
	return p
}

func TestRawCacheAnywhere(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		settle(t, rawly(t, drawn(t)), rapid.Bool().Draw(t, "flat"))
	})
}

// Frequencies by how far a call reaches, where all rows of a batch count and
// padding does not.
func TestFrequenciesByReach(t *testing.T) {
	base := attention(4, 2, 32)
	long := make([]float64, 16)
	for i, f := range base.Encoding.Frequencies {
		long[i] = float64(float32(f / (1 + float64(i))))
	}
	for name, reach := range map[string]rope.LengthDependent{
		"long":   {Trained: 60, Long: long},
		"ntk":    {Trained: 60, NTK: 2},
		"linear": {Trained: 60, Linear: true},
	} {
		for _, cache := range []rope.Cache{rope.Raw, rope.Rotated} {
			a := with(base, func(a *rope.Attention) { a.Encoding.LengthDependent, a.Cache = reach, cache })
			for call, p := range map[string]ref.Problem{
				"within":   problem(a, 2, 60, 0),
				"beyond":   problem(a, 2, 61, 0),
				"decode":   problem(a, 2, 1, 130),
				"across":   problem(a, 2, 9, 55),
				"at L0":    problem(a, 2, 1, 59),
				"padded":   leftPadded(problem(a, 2, 70, 0), 12, 13),
				"one long": from(problem(a, 2, 9, 50), 51, 53),
				"mapped":   problem(with(a, func(a *rope.Attention) { a.Bands = stringBands(40, 9) }), 1, 90, 10),
			} {
				t.Run(fmt.Sprintf("%s, %s, cache %d", name, call, cache), func(t *testing.T) { settle(t, p, false) })
			}
		}
	}
}

// With total_length it is the caller who says how far a call reaches.
func TestFrequenciesByTotalLength(t *testing.T) {
	run := func(total int, encode func(*rope.Encoding)) tensor {
		a := with(attention(4, 2, 32), func(a *rope.Attention) { encode(&a.Encoding) })
		f := fixed{rows: fixedRows(problem(a, 1, 3, 0), 50, 7), capacity: 70, total: total}.fill(1)
		in, node := f.feeds(false), f.node(t)
		node.SetAttribute(onnx.IntAttr("spec_version", 3))
		s, err := newSession(t, node, typesOf(in), 2)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.run(in)
		if err != nil {
			t.Fatal(err)
		}
		return got["output"]
	}
	long := make([]float64, 16)
	for i := range long {
		long[i] = 1 / float64(i+3)
	}
	byLength := func(e *rope.Encoding) { e.LengthDependent = rope.LengthDependent{Trained: 60, Long: long} }
	for total, encode := range map[int]func(*rope.Encoding){
		60: func(*rope.Encoding) {},
		61: func(e *rope.Encoding) { e.Frequencies = long },
	} {
		if got, want := run(total, byLength), run(total, encode); !slices.Equal(got.floats, want.floats) {
			t.Errorf("with total_length %d the frequencies are not those of that length", total)
		}
	}
}

// In 16 bits raw keys are as the cache has them, and all that is turned stays
// in float32: only the output is rounded.
func TestHalfPrecisionRaw(t *testing.T) {
	for name, a := range testsample.OfMap(t, rawMaps(), 2) {
		for call, shape := range map[string]ref.Problem{"prefill": problem(a, 1, 90, 0), "chunk": problem(a, 2, 29, 101), "decode": problem(a, 2, 1, 131)} {
			t.Run(name+", "+call, func(t *testing.T) {
				for _, h := range []halfType{float16, bfloat16} {
					var output, present pool
					for seed := range uint64(8) {
						p := h.filled(shape, seed)
						in := feedsOf(p, false)
						s, err := sessionOf(t, h.casts(nodeOf(t, p)), typesOf(in), 2)
						if err != nil {
							t.Fatal(err)
						}
						got, err := s.run(in)
						if err != nil {
							t.Fatal(err)
						}
						want, err := ref.Run(p)
						if err != nil {
							t.Fatal(err)
						}
						plain, err := ref.RunFloat32(p)
						if err != nil {
							t.Fatal(err)
						}
						output.add(t, "output", got["output"], want.Output, h.rounded(plain.Output), int64(p.Batch), 4, int64(p.Length), 32)
						present.add(t, "present_key", got["present_key"], want.PresentKey, plain.PresentKey, int64(p.Batch), 2, int64(p.Past+p.Length), 32)
					}
					output.verdict(t, "output")
					if present.err != 0 {
						t.Errorf("raw keys come back changed, by %g", present.err)
					}
				}
			})
		}
	}
}
