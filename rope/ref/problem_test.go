package ref_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Fatal(...any)
}

func mustRun(t tester, p ref.Problem) ref.Result {
	t.Helper()
	r, err := ref.Run(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustRun32(t tester, p ref.Problem) ref.Result {
	t.Helper()
	r, err := ref.RunFloat32(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustApply(t tester, axis rope.Axis, text string, a rope.Attention, c rope.Context) rope.Attention {
	t.Helper()
	spec, err := rope.ParseSpec(axis, text)
	if err != nil {
		t.Fatal(err)
	}
	edited, _, err := spec.Apply(a, c)
	if err != nil {
		t.Fatal(err)
	}
	return edited
}

// distance is the largest difference; infinite for different lengths or NaN.
func distance(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	var worst float64
	for i := range a {
		if a[i] == b[i] { // infinities too
			continue
		}
		d := math.Abs(a[i] - b[i])
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst
}

func normal(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(float32(r.NormFloat64()))
	}
	return x
}

// draw makes a causal problem of random shape, rotation, window, softcap,
// biases and sinks, without past or padding.
func draw(t *rapid.T) ref.Problem {
	kvHeads := rapid.IntRange(1, 2).Draw(t, "kv heads")
	a := rope.Attention{
		KVHeads:  kvHeads,
		Heads:    kvHeads * rapid.IntRange(1, 3).Draw(t, "group"),
		HeadSize: 2 * rapid.IntRange(1, 5).Draw(t, "half head"),
		Mask:     rope.Mask{Causal: true, Padding: true},
		Scale:    rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "scale"),
		Softcap:  rapid.SampledFrom([]float64{0, 5}).Draw(t, "softcap"),
	}
	pairs := rapid.IntRange(1, a.HeadSize/2).Draw(t, "pairs")
	a.Encoding = rope.Encoding{
		Frequencies: make([]float64, pairs),
		Gain:        rapid.SampledFrom([]float64{0, 1.2}).Draw(t, "gain"),
		Layout:      rapid.SampledFrom([]rope.Layout{rope.Half, rope.Interleaved}).Draw(t, "layout"),
		Offset:      rapid.IntRange(0, a.HeadSize-2*pairs).Draw(t, "offset"),
		ExactAngles: true,
	}
	for i := range a.Encoding.Frequencies {
		a.Encoding.Frequencies[i] = math.Pow(100, -float64(i)/float64(pairs))
	}
	if rapid.Bool().Draw(t, "windowed") {
		a.Mask.Window = rapid.Int64Range(1, 12).Draw(t, "window")
		a.Mask.FirstKeys = rapid.Int64Range(0, 2).Draw(t, "first keys")
	}
	p := ref.Problem{
		Attention: a,
		Batch:     rapid.IntRange(1, 2).Draw(t, "batch"),
		Length:    rapid.IntRange(1, 15).Draw(t, "length"),
		ValueSize: rapid.IntRange(1, 3).Draw(t, "value size"),
	}
	r := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
	p.Query = normal(r, p.Batch*a.Heads*p.Length*a.HeadSize)
	p.Key = normal(r, p.Batch*a.KVHeads*p.Length*a.HeadSize)
	p.Value = normal(r, p.Batch*a.KVHeads*p.Length*p.ValueSize)
	if rapid.Bool().Draw(t, "biased") {
		p.Bias = normal(r, p.Batch*a.Heads*p.Length*p.Length)
	}
	if rapid.Bool().Draw(t, "biased before the softcap") {
		p.BiasBeforeSoftcap = normal(r, p.Batch*a.Heads*p.Length*p.Length)
	}
	if rapid.Bool().Draw(t, "sinks") {
		p.Attention.Sinks = normal(r, a.Heads)
	}
	return p
}

// positions gives every row its index plus the row's own start.
func positions(p ref.Problem, starts ...int64) []int64 {
	at := make([]int64, 0, p.Batch*p.Length)
	for b := range p.Batch {
		for l := range p.Length {
			at = append(at, int64(p.Past+l)+starts[b%len(starts)])
		}
	}
	return at
}

// places cuts places from … to out of data [rows, length, size].
func places(data []float64, length, size, from, to int) []float64 {
	var cut []float64
	for row := range slices.Chunk(data, max(1, length*size)) {
		cut = append(cut, row[from*size:to*size]...)
	}
	return cut
}
