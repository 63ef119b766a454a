package ref_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

func same(t *rapid.T, what string, a, b ref.Result, tolerance float64) {
	t.Helper()
	if d := distance(a.Output, b.Output); d > tolerance {
		t.Fatalf("%s: outputs differ by %g", what, d)
	}
	if d := distance(a.LogSumExp, b.LogSumExp); d > tolerance {
		t.Fatalf("%s: log-sum-exps differ by %g", what, d)
	}
	if !slices.Equal(a.Visible, b.Visible) {
		t.Fatalf("%s: visible keys %v and %v", what, a.Visible, b.Visible)
	}
}

// stringBands is the far band without the method's refusals.
func stringBands(s, w int64) []rope.Band {
	return []rope.Band{
		{Start: 0, QueryScale: 1, KeyScale: 1},
		{Start: s, QueryScale: 1, QueryOffset: float64(w - s), KeyScale: 1},
	}
}

func TestStringIdentities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		whole := mustRun(t, p)
		far := p
		far.Attention = mustApply(t, rope.PositionsAxis, fmt.Sprintf("string:shift=%d,window=0", p.Length), p.Attention, rope.Context{})
		same(t, "shift ≥ length", mustRun(t, far), whole, 0)

		equal := p
		s := rapid.Int64Range(1, 20).Draw(t, "S")
		equal.Attention.Bands = stringBands(s, s)
		same(t, "window = shift, as bands", mustRun(t, equal), whole, 0)
		equal.Attention = mustApply(t, rope.PositionsAxis, fmt.Sprintf("string:shift=%d,window=%d", s, s), p.Attention, rope.Context{})
		same(t, "window = shift, as method", mustRun(t, equal), whole, 0)
	})
}

// With zero queries every visible key has the same weight; values that mark
// their key show which keys were counted, and how often.
func TestEveryKeyCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Bias, p.BiasBeforeSoftcap, p.Attention.Sinks = nil, nil, nil
		if rapid.Bool().Draw(t, "banded") {
			p.Attention = mustApply(t, rope.PositionsAxis, drawMap(t, p.Length).spec, p.Attention, rope.Context{})
		}
		clear(p.Query)
		p.ValueSize = p.Length
		p.Value = make([]float64, p.Batch*p.Attention.KVHeads*p.Length*p.Length)
		for row := range p.Batch * p.Attention.KVHeads * p.Length {
			p.Value[row*p.Length+row%p.Length] = 1
		}
		padding := rapid.IntRange(0, p.Length).Draw(t, "padding")
		for range p.Batch {
			for j := range p.Length {
				p.KeyMask = append(p.KeyMask, j >= padding)
			}
		}
		r := mustRun(t, p)
		for row := range p.Batch * p.Attention.Heads * p.Length {
			i, b := row%p.Length, row/(p.Attention.Heads*p.Length)
			n := 0
			for j := range p.Length {
				if j >= padding && visible(p.Attention.Mask, i-padding, j-padding) {
					n++
				}
			}
			if got := r.Visible[b*p.Length+i]; got != n {
				t.Fatalf("query %d sees %d keys, want %d", i, got, n)
			}
			want := math.Inf(-1)
			if n > 0 {
				want = math.Log(float64(n))
			}
			if lse := r.LogSumExp[row]; lse != want && math.Abs(lse-want) > 1e-14 {
				t.Fatalf("query %d: log-sum-exp %g, want %g", i, lse, want)
			}
			for j := range p.Length {
				want := 0.0
				if j >= padding && visible(p.Attention.Mask, i-padding, j-padding) {
					want = 1 / float64(n)
				}
				if got := r.Output[row*p.Length+j]; math.Abs(got-want) > 1e-15 {
					t.Fatalf("query %d gives key %d the weight %g, want %g", i, j, got, want)
				}
			}
		}
	})
}

// First keys are a row's own: of the keys that the mask shows, wherever they stand.
func TestFirstKeysAreReal(t *testing.T) {
	for mask, want := range map[string][]int{
		"1111111": {1, 2, 3, 4, 4, 4, 4},
		"0001111": {0, 0, 0, 1, 2, 3, 4},
		"0101111": {0, 1, 1, 2, 3, 4, 4},
		"1100111": {1, 2, 2, 2, 3, 4, 4}, // what a hole takes from the window stays taken
		"0000001": {0, 0, 0, 0, 0, 0, 1},
		"1000000": {1, 1, 1, 1, 1, 1, 1},
		"0000000": {0, 0, 0, 0, 0, 0, 0},
	} {
		for past := range len(mask) { // one call after another sees the same
			a := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 1, Mask: rope.Mask{Causal: true, Window: 2, FirstKeys: 2, Padding: true}}
			length := len(mask) - past
			p := ref.Problem{Attention: a, Batch: 1, Length: length, Past: past,
				Query: make([]float64, length), Key: make([]float64, length), Value: make([]float64, length),
				PastKey: make([]float64, past), PastValue: make([]float64, past)}
			for _, shown := range mask {
				p.KeyMask = append(p.KeyMask, shown == '1')
			}
			got, err := ref.Run(p)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Visible, want[past:]) {
				t.Errorf("mask %s after %d tokens: queries see %v keys, want %v", mask, past, got.Visible, want[past:])
			}
		}
	}
}

func TestCommonShift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		moved := p
		moved.Positions = positions(p, rapid.Int64Range(0, 131071).Draw(t, "shift"))
		same(t, "positions moved", mustRun(t, moved), mustRun(t, p), 1e-9)
	})
}

func TestChunkedIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Bias, p.BiasBeforeSoftcap = nil, nil
		p.Attention.Encoding.ExactAngles = rapid.Bool().Draw(t, "exact angles")
		p.Attention.Cache = rapid.SampledFrom([]rope.Cache{rope.Rotated, rope.Raw}).Draw(t, "cache")
		if rapid.Bool().Draw(t, "banded") {
			p.Attention = mustApply(t, rope.PositionsAxis, drawMap(t, p.Length).spec, p.Attention, rope.Context{})
		}
		if rapid.Bool().Draw(t, "warm") {
			p.Attention.Temperature = rope.Temperature{Slope: 0.4}
		}
		start := rapid.SampledFrom([]int64{0, 7, 131000}).Draw(t, "start")
		p.Positions = positions(p, start)
		padding := rapid.IntRange(0, p.Length-1).Draw(t, "padding")
		for range p.Batch {
			for j := range p.Length {
				p.KeyMask = append(p.KeyMask, j >= padding)
			}
		}
		whole := mustRun(t, p)

		a, from := p.Attention, 0
		var past ref.Result
		for from < p.Length {
			to := rapid.IntRange(from+1, p.Length).Draw(t, "chunk end")
			chunk := ref.Problem{
				Attention: a, Batch: p.Batch, Length: to - from, Past: from, ValueSize: p.ValueSize,
				Query:   places(p.Query, p.Length, a.HeadSize, from, to),
				Key:     places(p.Key, p.Length, a.HeadSize, from, to),
				Value:   places(p.Value, p.Length, p.ValueSize, from, to),
				PastKey: past.PresentKey, PastValue: past.PresentValue,
			}
			chunk.Positions = positions(chunk, start)
			for range p.Batch {
				for j := range to {
					chunk.KeyMask = append(chunk.KeyMask, j >= padding)
				}
			}
			past = mustRun(t, chunk)
			want := places(whole.Output, p.Length, p.ValueSize, from, to)
			if d := distance(past.Output, want); d != 0 {
				t.Fatalf("places %d to %d differ by %g", from, to, d)
			}
			from = to
		}
		if distance(past.PresentKey, whole.PresentKey) != 0 || distance(past.PresentValue, whole.PresentValue) != 0 {
			t.Fatal("caches differ")
		}
	})
}

func TestYarnFactorOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		for i := range p.Attention.Encoding.Frequencies {
			p.Attention.Encoding.Frequencies[i] = float64(float32(p.Attention.Encoding.Frequencies[i]))
		}
		scaled := p
		scaled.Attention = mustApply(t, rope.ScalingAxis, "yarn:factor=1,original_max_position_embeddings=64,rope_theta=100", p.Attention, rope.Context{})
		same(t, "factor 1", mustRun(t, scaled), mustRun(t, p), 1e-5)
		linear := p
		linear.Attention = mustApply(t, rope.ScalingAxis, "linear:factor=1", p.Attention, rope.Context{})
		same(t, "linear 1", mustRun(t, linear), mustRun(t, p), 0)
	})
}

// A row is computed as if it were alone and without its padding.
func TestLeftPaddingAndBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Bias, p.BiasBeforeSoftcap = nil, nil
		if rapid.Bool().Draw(t, "banded") {
			p.Attention.Bands = stringBands(rapid.Int64Range(1, 8).Draw(t, "S"), 0)
		}
		a := p.Attention
		padding := make([]int, p.Batch)
		for b := range p.Batch {
			padding[b] = rapid.IntRange(0, p.Length-1).Draw(t, "padding")
			for l := range p.Length {
				p.KeyMask = append(p.KeyMask, l >= padding[b])
				position := int64(l - padding[b])
				if position < 0 {
					position = 1 // as transformers fills padded places
				}
				p.Positions = append(p.Positions, position)
			}
		}
		whole := mustRun(t, p)
		for b := range p.Batch {
			row := func(data []float64, heads, size int) []float64 {
				n := heads * p.Length * size
				return places(data[b*n:(b+1)*n], p.Length, size, padding[b], p.Length)
			}
			alone := mustRun(t, ref.Problem{
				Attention: a, Batch: 1, Length: p.Length - padding[b], ValueSize: p.ValueSize,
				Query: row(p.Query, a.Heads, a.HeadSize), Key: row(p.Key, a.KVHeads, a.HeadSize), Value: row(p.Value, a.KVHeads, p.ValueSize),
			})
			if d := distance(row(whole.Output, a.Heads, p.ValueSize), alone.Output); d > 1e-13 {
				t.Fatalf("row %d with %d padded places differs by %g", b, padding[b], d)
			}
		}
	})
}

// One decode step at the far end of a 128K context.
func TestLongPosition(t *testing.T) {
	const past, size = 4096, 8
	r := rand.New(rand.NewPCG(2, 3))
	a := rope.Attention{
		Heads: 1, KVHeads: 1, HeadSize: size, Mask: rope.Mask{Causal: true}, Cache: rope.Raw,
		Encoding: rope.Encoding{Frequencies: []float64{1, 0.1, 0.01, 0.001}, ExactAngles: true},
		Bands:    stringBands(1000, 128),
	}
	p := ref.Problem{
		Attention: a, Batch: 1, Length: 1, Past: past,
		Query: normal(r, size), Key: normal(r, size), Value: normal(r, size),
		PastKey: normal(r, past*size), PastValue: normal(r, past*size), Positions: []int64{131071},
	}
	near := p
	near.Positions = []int64{past}
	if d := distance(mustRun(t, p).Output, mustRun(t, near).Output); d > 1e-10 {
		t.Errorf("the same distances at position 131071 give outputs that differ by %g", d)
	}
	far, err := ref.RunFloat32(p)
	if err != nil {
		t.Fatal(err)
	}
	if d := distance(mustRun(t, p).Output, far.Output); d == 0 || d > 1e-5 {
		t.Errorf("float32 differs by %g", d)
	}
}

// Scores far beyond the exponential's range pick the highest key.
func TestLargeScores(t *testing.T) {
	p := ref.Problem{
		Attention: rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 1, Mask: rope.Mask{Causal: true}},
		Batch:     1, Length: 3,
		Query: []float64{1, 1, 1e4}, Key: []float64{-1e4, 3, 2}, Value: []float64{10, 20, 30},
	}
	for _, run := range []func(ref.Problem) (ref.Result, error){ref.Run, ref.RunFloat32} {
		r, err := run(p)
		if err != nil {
			t.Fatal(err)
		}
		if want := []float64{10, 20, 20}; !slices.Equal(r.Output, want) {
			t.Errorf("output %v, want %v", r.Output, want)
		}
		if want := []float64{-1e4, 3, 3e4}; !slices.Equal(r.LogSumExp, want) {
			t.Errorf("log-sum-exp %v, want %v", r.LogSumExp, want)
		}
	}
}

// By default the angle is rounded as exporters round it.
func TestAngleRounding(t *testing.T) {
	omega := float64(float32(0.1))
	for _, exact := range []bool{false, true} {
		p := ref.Problem{
			Attention: rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 2, Encoding: rope.Encoding{Frequencies: []float64{omega}, ExactAngles: exact}},
			Batch:     1, Length: 1, Query: []float64{1, 0}, Key: []float64{1, 0}, Value: []float64{1, 0}, Positions: []int64{131071},
		}
		angle := 131071 * omega
		if !exact {
			angle = float64(float32(131071) * float32(0.1))
		}
		want := []float64{math.Cos(angle), math.Sin(angle)}
		if got := mustRun(t, p).PresentKey; got[0] != want[0] || got[1] != want[1] {
			t.Errorf("exact %v: %v, want %v", exact, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	good := func() ref.Problem {
		return ref.Problem{
			Attention: rope.Attention{
				Heads: 2, KVHeads: 1, HeadSize: 4, Mask: rope.Mask{Causal: true, Padding: true},
				Encoding: rope.Encoding{Frequencies: []float64{1, 0.1}}, Bands: stringBands(2, 1),
			},
			Batch: 1, Length: 3, Past: 1,
			Query: make([]float64, 24), Key: make([]float64, 12), Value: make([]float64, 12),
			PastKey: make([]float64, 4), PastValue: make([]float64, 4),
		}
	}
	mustRun(t, good())
	for want, spoil := range map[string]func(*ref.Problem){
		"multiple of kv heads":     func(p *ref.Problem) { p.Attention.KVHeads = 3 },
		"query has 23 elements":    func(p *ref.Problem) { p.Query = p.Query[1:] },
		"key mask has 2 elements":  func(p *ref.Problem) { p.KeyMask = make([]bool, 2) },
		"that has none":            func(p *ref.Problem) { p.KeyMask = make([]bool, 4); p.Attention.Mask.Padding = false },
		"do not fit":               func(p *ref.Problem) { p.Attention.Encoding.Offset = 1 },
		"needs a causal mask":      func(p *ref.Problem) { p.Attention.Mask.Causal = false },
		"start at 0 and rise":      func(p *ref.Problem) { p.Attention.Bands[0].Start = 1 },
		"rotated keys cannot do":   func(p *ref.Problem) { p.Attention.Bands[1].KeyScale = 0.5 },
		"row 0: position − index":  func(p *ref.Problem) { p.Positions = []int64{1, 2, 4} },
		"the batch must be posit":  func(p *ref.Problem) { p.Batch = 0 },
		"bias has 1 elements, its": func(p *ref.Problem) { p.Bias = []float64{0} },
	} {
		p := good()
		spoil(&p)
		_, err := ref.Run(p)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	p := good() // a gap in the positions of padding does no harm
	p.Positions, p.KeyMask = []int64{77, 2, 3}, []bool{false, false, true, true}
	mustRun(t, p)
}
