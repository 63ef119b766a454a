package ref_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// positionMap is a method with the distance that its paper gives for a query at
// position i and a key at j ≤ i. No band is looked at.
type positionMap struct {
	spec     string
	distance func(i, j int) float64
	byPlaces bool // chunks and groups begin at position 0, so a common shift moves them
}

func drawMap(t *rapid.T, length int) positionMap {
	number := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	w := number("window", 1, length)
	switch rapid.SampledFrom([]string{"string", "rerope", "leaky-rerope", "self-extend", "dual-chunk"}).Draw(t, "map") {
	case "string":
		to := number("to", 0, w)
		return positionMap{spec: fmt.Sprintf("string:shift=%d,window=%d", w, to), distance: func(i, j int) float64 {
			if i-j < w {
				return float64(i - j)
			}
			return float64(i - j - w + to)
		}}
	case "rerope":
		return positionMap{spec: fmt.Sprintf("rerope:window=%d", w), distance: func(i, j int) float64 { return float64(min(i-j, w)) }}
	case "leaky-rerope":
		k := float64(rapid.SampledFrom([]int{2, 4, 16}).Draw(t, "factor"))
		return positionMap{spec: fmt.Sprintf("leaky-rerope:window=%d,factor=%g", w, k), distance: func(i, j int) float64 {
			if i-j < w {
				return float64(i - j)
			}
			return float64(w) + float64(i-j-w)/k
		}}
	case "self-extend":
		g := number("group", 1, w)
		return positionMap{spec: fmt.Sprintf("self-extend:window=%d,group=%d", w, g), byPlaces: true, distance: func(i, j int) float64 {
			if i-j < w {
				return float64(i - j)
			}
			return float64(i/g - j/g + w - w/g)
		}}
	}
	chunk := number("chunk", 1, length)
	local := number("local", 0, 5)
	size := chunk + local
	return positionMap{spec: fmt.Sprintf("dual-chunk:chunk_size=%d,local_size=%d", size, local), byPlaces: true, distance: func(i, j int) float64 {
		query := i % chunk
		switch i/chunk - j/chunk {
		case 0:
		case 1:
			query = min(query+chunk, size)
		default:
			query = min(2*chunk-1, size)
		}
		return float64(query - j%chunk)
	}}
}

// Every map by its paper's distances, from any position on, in one call and in
// chunks, with left padding in one of the rows.
func TestMapsByDistances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Bias, p.BiasBeforeSoftcap = nil, nil
		if p.Attention.Mask.Window > 0 && p.Attention.Mask.FirstKeys == 0 {
			p.Attention.Mask.Window = 0 // or the map may have no effect at all
		}
		m := drawMap(t, p.Length)
		start := rapid.IntRange(0, 131071-p.Length).Draw(t, "start")
		plain := p
		p.Attention = mustApply(t, rope.PositionsAxis, m.spec, p.Attention, rope.Context{})
		p.Positions = positions(p, int64(start))
		want, logs := relative(plain, func(i, j int) (float64, bool) {
			return m.distance(i+start, max(0, j+start)), visible(p.Attention.Mask, i, j)
		})
		whole := mustRun(t, p)
		if d := max(distance(whole.Output, want), distance(whole.LogSumExp, logs)); d > 1e-7 {
			t.Fatalf("%s differs by %g", m.spec, d)
		}

		for b := range p.Batch { // the same text behind padding
			one := row(p, b)
			pad := rapid.IntRange(0, 5).Draw(t, "padding")
			padded := padLeft(one, pad)
			got := mustRun(t, padded)
			if d := distance(tailOf(got.Output, padded, pad), mustRun(t, one).Output); d > 1e-9 {
				t.Fatalf("%s: %d places of padding move the output by %g", m.spec, pad, d)
			}
		}
	})
}

// padLeft puts hidden tokens before those of a one-row problem; positions stay.
func padLeft(p ref.Problem, pad int) ref.Problem {
	a := p.Attention
	a.Mask.Padding = true
	front := func(data []float64, size int) []float64 {
		var out []float64
		for m := 0; m < len(data); m += p.Length * size {
			for range pad * size {
				out = append(out, 0.5)
			}
			out = append(out, data[m:m+p.Length*size]...)
		}
		return out
	}
	q := ref.Problem{Attention: a, Batch: 1, Length: p.Length + pad, ValueSize: p.ValueSize,
		Query: front(p.Query, a.HeadSize), Key: front(p.Key, a.HeadSize), Value: front(p.Value, p.ValueSize)}
	for j := range q.Length {
		q.KeyMask = append(q.KeyMask, j >= pad)
		at := int64(1) // as transformers fills in
		if j >= pad {
			at = p.Positions[j-pad]
		}
		q.Positions = append(q.Positions, at)
	}
	return q
}

// tailOf takes the outputs behind the padding.
func tailOf(output []float64, p ref.Problem, pad int) []float64 {
	return places(output, p.Length, p.ValueSize, pad, p.Length)
}

// Which maps a common shift of all positions does not change: those by distances.
func TestMapsUnderCommonShift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		p.Attention.Mask.Window, p.Attention.Mask.FirstKeys = 0, 0
		m := drawMap(t, p.Length)
		if m.byPlaces {
			return
		}
		p.Attention = mustApply(t, rope.PositionsAxis, m.spec, p.Attention, rope.Context{})
		moved := p
		moved.Positions = positions(p, rapid.Int64Range(0, 100000).Draw(t, "shift"))
		same(t, m.spec, mustRun(t, moved), mustRun(t, p), 1e-7)
	})
}

// Maps that take nothing away within their reach are the identity there.
func TestMapsWithinReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		whole := mustRun(t, p)
		n := p.Length
		for _, spec := range []string{
			fmt.Sprintf("rerope:window=%d", n), fmt.Sprintf("leaky-rerope:window=%d,factor=3", n),
			fmt.Sprintf("self-extend:window=%d,group=1", 3), fmt.Sprintf("self-extend:window=%d,group=2", max(2, n)),
			fmt.Sprintf("dual-chunk:chunk_size=%d,local_size=2", n+2),
		} {
			mapped := p
			mapped.Attention = mustApply(t, rope.PositionsAxis, spec, p.Attention, rope.Context{})
			same(t, spec, mustRun(t, mapped), whole, 1e-12)
		}
	})
}
