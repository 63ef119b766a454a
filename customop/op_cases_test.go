package customop_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// attention is a causal llama-like attention that the cases vary.
func attention(heads, kvHeads, headSize int) rope.Attention {
	return rope.Attention{
		Heads: heads, KVHeads: kvHeads, HeadSize: headSize,
		Encoding: rope.Encoding{Frequencies: frequencies(headSize, 10000)},
		Mask:     rope.Mask{Causal: true},
	}
}

func problem(a rope.Attention, batch, length, past int) ref.Problem {
	return ref.Problem{Attention: a, Batch: batch, Length: length, Past: past}
}

// stringBands is the map of STRING: distances below shift are true, the others
// are shift − window shorter.
func stringBands(shift, window int64) []rope.Band {
	return []rope.Band{
		{Start: 0, QueryScale: 1, KeyScale: 1},
		{Start: shift, QueryScale: 1, QueryOffset: float64(window - shift), KeyScale: 1},
	}
}

// from gives every row positions that rise by one from its start.
func from(p ref.Problem, starts ...int64) ref.Problem {
	for b := range p.Batch {
		for l := range p.Length {
			p.Positions = append(p.Positions, starts[b%len(starts)]+int64(l))
		}
	}
	return p
}

// leftPadded hides the first keys of each row; positions count the real tokens,
// and padding stands at 1, as transformers does.
func leftPadded(p ref.Problem, padding ...int) ref.Problem {
	p.Attention.Mask.Padding = true
	for b := range p.Batch {
		pad := padding[b%len(padding)]
		for j := range p.Past + p.Length {
			p.KeyMask = append(p.KeyMask, j >= pad)
		}
		for l := range p.Length {
			position := int64(p.Past + l - pad)
			if position < 0 {
				position = 1
			}
			p.Positions = append(p.Positions, position)
		}
	}
	return p
}

// rightPadded hides the last keys of each row.
func rightPadded(p ref.Problem, padding ...int) ref.Problem {
	p.Attention.Mask.Padding = true
	for b := range p.Batch {
		for j := range p.Past + p.Length {
			p.KeyMask = append(p.KeyMask, j < p.Past+p.Length-padding[b%len(padding)])
		}
	}
	return p
}

// holes hides about a third of the keys at random.
func holes(p ref.Problem, seed uint64) ref.Problem {
	r := rand.New(rand.NewPCG(seed, 1))
	p.Attention.Mask.Padding = true
	for range p.Batch * (p.Past + p.Length) {
		p.KeyMask = append(p.KeyMask, r.IntN(3) > 0)
	}
	return p
}

// with returns the attention after a change.
func with(a rope.Attention, change func(*rope.Attention)) rope.Attention {
	change(&a)
	return a
}

func cases() map[string]ref.Problem {
	const last = 131071
	windowed := with(attention(4, 2, 32), func(a *rope.Attention) { a.Mask.Window = 7 })
	stringed := with(attention(4, 2, 32), func(a *rope.Attention) { a.Bands = stringBands(40, 9) })
	list := map[string]ref.Problem{
		"one token":        problem(attention(4, 4, 64), 1, 1, 0),
		"odd prefill MHA":  problem(attention(4, 4, 64), 1, 37, 0),
		"prefill GQA":      problem(attention(9, 3, 64), 3, 131, 0),
		"prefill MQA":      problem(attention(6, 1, 64), 1, 61, 0),
		"long prefill":     problem(attention(2, 1, 64), 1, 700, 0),
		"decode":           problem(attention(9, 3, 64), 3, 1, 301),
		"long decode":      problem(attention(4, 1, 64), 1, 1, 4097),
		"chunk":            problem(attention(4, 2, 64), 3, 29, 101),
		"no rotation":      problem(with(attention(4, 2, 64), func(a *rope.Attention) { a.Encoding.Frequencies = nil }), 1, 17, 5),
		"bidirectional":    problem(with(attention(4, 2, 64), func(a *rope.Attention) { a.Mask.Causal = false }), 3, 45, 0),
		"scale and gain":   problem(with(attention(4, 2, 64), func(a *rope.Attention) { a.Scale, a.Encoding.Gain = 0.07, 1.25 }), 1, 33, 12),
		"interleaved":      problem(with(attention(4, 2, 64), func(a *rope.Attention) { a.Encoding.Layout = rope.Interleaved }), 3, 33, 12),
		"exact angles":     from(problem(with(attention(4, 2, 64), func(a *rope.Attention) { a.Encoding.ExactAngles = true }), 1, 65, 0), last-64),
		"far":              from(problem(attention(4, 2, 64), 3, 65, 0), last-64, 40000, 0),
		"far decode":       from(problem(attention(4, 2, 64), 1, 1, 33), last),
		"position offset":  from(problem(attention(4, 2, 64), 3, 9, 40), 1000, 40, 7),
		"left padding":     leftPadded(problem(attention(4, 2, 64), 3, 40, 0), 0, 13, 39),
		"left padding 1":   leftPadded(problem(attention(4, 2, 64), 3, 1, 60), 0, 13, 60),
		"all padding":      leftPadded(problem(attention(4, 2, 64), 1, 12, 0), 12),
		"holes":            holes(problem(attention(4, 2, 64), 3, 50, 31), 5),
		"holes, both ways": holes(problem(with(attention(4, 2, 64), func(a *rope.Attention) { a.Mask.Causal = false }), 3, 50, 0), 6),
		"window":           problem(windowed, 3, 50, 20),
		"window decode":    problem(windowed, 3, 1, 300),
		"window, padded":   leftPadded(problem(windowed, 3, 50, 0), 3, 0, 21),
		"window both ways": problem(with(windowed, func(a *rope.Attention) { a.Mask.Causal = false }), 1, 50, 0),
		"window of one":    problem(with(windowed, func(a *rope.Attention) { a.Mask.Window = 1 }), 1, 21, 4),
		"bands":            problem(stringed, 3, 131, 0),
		"bands decode":     problem(stringed, 3, 1, 131),
		"bands chunk":      problem(stringed, 1, 50, 31),
		"bands, shifted":   from(problem(stringed, 3, 100, 0), 5000, 0, last-99),
		"bands, padded":    leftPadded(problem(stringed, 3, 100, 0), 0, 13, 90),
		"bands, padded 1":  leftPadded(problem(stringed, 3, 1, 99), 0, 13, 99),
		"bands, holes":     holes(problem(stringed, 3, 100, 17), 8),
		"bands, window":    problem(with(stringed, func(a *rope.Attention) { a.Mask.Window = 60 }), 1, 131, 10),
		"bands from one":   problem(with(stringed, func(a *rope.Attention) { a.Bands = stringBands(1, 0) }), 1, 40, 3),
		"bands unreached":  problem(with(stringed, func(a *rope.Attention) { a.Bands = stringBands(1<<40, 5) }), 1, 40, 3),
		"scaled bands":     problem(with(stringed, func(a *rope.Attention) { a.Bands = stringBands(40, 9); a.Bands[1].QueryScale = 0.5 }), 1, 90, 3),
		"bands, exact":     from(problem(with(stringed, func(a *rope.Attention) { a.Encoding.ExactAngles = true }), 1, 100, 0), last-99),
	}
	partial := attention(4, 2, 64)
	partial.Encoding = rope.Encoding{Frequencies: frequencies(24, 10000), Offset: 17}
	list["partial, offset"] = problem(partial, 3, 33, 12)
	partial.Encoding.Layout = rope.Interleaved
	list["partial, offset, interleaved"] = problem(partial, 3, 33, 12)
	partial.Encoding = rope.Encoding{Frequencies: frequencies(64, 10000), Gain: 1.1}
	partial.Encoding.Frequencies = partial.Encoding.Frequencies[:5]
	list["five pairs"] = problem(partial, 1, 33, 12)
	other := problem(attention(4, 2, 64), 3, 33, 12)
	other.ValueSize = 40
	list["value size"] = other
	for size, name := range map[int]string{8: "heads of 8", 10: "heads of 10", 80: "heads of 80", 96: "heads of 96", 128: "heads of 128", 256: "heads of 256"} {
		list[name] = problem(attention(4, 2, size), 3, 35, 6)
	}
	return list
}

func TestAgainstReference(t *testing.T) {
	for name, p := range testsample.OfMap(t, cases(), 20) {
		t.Run(name, func(t *testing.T) {
			for _, flat := range []bool{false, true} {
				settle(t, p, flat)
			}
		})
	}
}

// Tokens in one call, in chunks, and one by one: each against the reference of
// its own call, and all the same to the reference of the whole.
// The fallback against every version of the standard operators that it is written for:
// the oldest, the last without CastLike, the last in which ReduceMax has its axes as an
// attribute, and those of exporters.
func TestFallbackAtOpsets(t *testing.T) {
	list := cases()
	capped := problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Softcap, a.Sinks = 5, []float64{1, 2, 3, 4} }), 2, 9, 4)
	capped.Bias = biases(filled(capped, 0), 1, 6)
	list["softcap, sinks, bias"] = capped
	list["keys of another text"] = ofKeys(cross(4, 2, 32, 2, 9, 14), func(_, key int) bool { return key == 5 })
	for _, opset := range testsample.Of(t, []int64{13, 14, 15, 17, 18, 21, 23}, 3) {
		for _, name := range []string{"prefill GQA", "left padding 1", "bands, padded", "window, padded", "partial, offset, interleaved", "exact angles", "softcap, sinks, bias", "keys of another text"} {
			t.Run(fmt.Sprintf("%s, opset %d", name, opset), func(t *testing.T) {
				p := filled(list[name], 1)
				in := feedsOf(p, false)
				s, err := definedAt(false, opset)(t, []*onnx.Node{nodeOf(t, p)}, typesOf(in), 1)
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.run(in)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, p, false, got)
			})
		}
	}
}

func TestChunksAreTheWhole(t *testing.T) {
	for name, whole := range map[string]ref.Problem{
		"plain":             problem(attention(4, 2, 32), 2, 90, 0),
		"window":            problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Mask.Window = 20 }), 2, 90, 0),
		"bands":             problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Bands = stringBands(30, 6) }), 2, 90, 0),
		"padded":            leftPadded(problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Bands = stringBands(30, 6) }), 2, 90, 0), 11, 0),
		"streaming":         problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 20, 3 }), 2, 90, 0),
		"streaming, padded": leftPadded(problem(with(attention(4, 2, 32), func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 20, 3 }), 2, 90, 0), 11, 45),
		"documents":         scattered(leftPadded(problem(restarting(documented(attention(4, 2, 32), rope.AnchorDocument), 1), 2, 90, 0), 11, 0), 3, 9, -1, 0, 1, 2),
	} {
		t.Run(name, func(t *testing.T) { chunksAreTheWhole(t, whole) })
	}
}

func chunksAreTheWhole(t *testing.T, whole ref.Problem) {
	t.Helper()
	whole = filled(whole, 2)
	want, err := ref.Run(whole)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ref.RunFloat32(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, chunks := range [][]int{{40, 50}, {1, 88, 1}, {80, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
		var joined []tensor
		var each judge
		begin := 0
		var cache map[string]tensor
		for _, n := range chunks {
			part := slice(whole, begin, begin+n)
			if cache != nil {
				part.PastKey, part.PastValue = float64s(cache["present_key"]), float64s(cache["present_value"])
			}
			cache = outputsOf(t, part, false)
			each.add(t, part, false, cache)
			joined = append(joined, cache["output"])
			begin += n
		}
		each.verdict(t)
		a := whole.Attention
		within(t, "all chunks", join(joined), want.Output, plain.Output, 2, int64(a.Heads), 90, int64(a.HeadSize))
	}
}

// slice is the call that computes the tokens [begin, end) of a call without
// past; the caller fills the cache in.
func slice(p ref.Problem, begin, end int) ref.Problem {
	a, length := p.Attention, p.Length
	part := ref.Problem{Attention: a, Batch: p.Batch, Length: end - begin, Past: begin, ValueSize: p.ValueSize}
	part.Query = rows(p.Query, length, a.HeadSize, begin, end)
	part.Key = rows(p.Key, length, a.HeadSize, begin, end)
	part.Value = rows(p.Value, length, p.ValueSize, begin, end)
	if p.Positions != nil {
		part.Positions = rows(p.Positions, length, 1, begin, end)
	}
	if p.KeyMask != nil {
		part.KeyMask = rows(p.KeyMask, length, 1, 0, end)
	}
	if p.Documents != nil {
		part.Documents = rows(p.Documents, length, 1, 0, end)
	}
	return part
}

// rows takes rows [begin, end) of every [length, size] matrix.
func rows[T any](values []T, length, size, begin, end int) []T {
	var out []T
	for m := 0; m < len(values); m += length * size {
		out = append(out, values[m+begin*size:m+end*size]...)
	}
	return out
}

func float64s(x tensor) []float64 {
	list := make([]float64, len(x.floats))
	for i, v := range x.floats {
		list[i] = float64(v)
	}
	return list
}

// join puts [B, H, Lᵢ, D] tensors behind one another along their lengths.
func join(parts []tensor) tensor {
	b, h, d := parts[0].dims[0], parts[0].dims[1], parts[0].dims[3]
	joined := tensor{dims: []int64{b, h, 0, d}}
	for m := range b * h {
		for _, part := range parts {
			size := part.dims[2] * d
			joined.floats = append(joined.floats, part.floats[m*size:][:size]...)
		}
	}
	for _, part := range parts {
		joined.dims[2] += part.dims[2]
	}
	return joined
}
