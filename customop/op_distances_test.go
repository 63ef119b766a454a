package customop_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// sloped has ALiBi's slopes and no rotation, as float32 has them.
func sloped(heads, kvHeads, headSize int) rope.Attention {
	return with(attention(heads, kvHeads, headSize), func(a *rope.Attention) {
		a.Encoding.Frequencies = nil
		a.Distance.Slopes = float64s(floats(float32s(encoding.Slopes(heads)), int64(heads)))
	})
}

// bucketed has T5's buckets with random biases.
func bucketed(heads, kvHeads, headSize int, t encoding.T5) rope.Attention {
	r := rand.New(rand.NewPCG(11, 4))
	return with(attention(heads, kvHeads, headSize), func(a *rope.Attention) {
		a.Encoding.Frequencies = nil
		a.Mask.Causal = !t.Bidirectional
		before := -1
		for d := int64(-300); d <= 300; d++ {
			if b := t.Bucket(d); b != before {
				a.Distance.Starts = append(a.Distance.Starts, d)
				a.Distance.Biases = append(a.Distance.Biases, normal(r, heads))
				before = b
			}
		}
	})
}

// shown has distances count the keys that the mask shows.
func shown(p ref.Problem) ref.Problem {
	p.Attention.Distance.Shown = true
	return p
}

func distanceCases() map[string]ref.Problem {
	both := bucketed(4, 2, 32, encoding.T5{Bidirectional: true})
	list := map[string]ref.Problem{
		"slopes":                       problem(sloped(4, 4, 64), 2, 131, 0),
		"slopes of twelve heads":       problem(sloped(12, 3, 32), 1, 37, 9),
		"slopes, decode":               problem(sloped(4, 2, 64), 3, 1, 301),
		"slopes, long decode":          problem(sloped(2, 1, 32), 1, 1, 5003),
		"slopes, both ways":            problem(with(sloped(4, 2, 32), func(a *rope.Attention) { a.Mask.Causal = false }), 2, 61, 0),
		"slopes, window":               problem(with(sloped(4, 2, 32), func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 20, 3 }), 2, 90, 30),
		"slopes, left padding":         leftPadded(problem(sloped(4, 2, 32), 3, 40, 0), 0, 13, 39),
		"slopes, holes":                holes(problem(sloped(4, 2, 32), 3, 50, 31), 5),
		"slopes, shown, left padding":  shown(leftPadded(problem(sloped(4, 2, 32), 3, 40, 0), 0, 13, 39)),
		"slopes, shown, holes":         shown(holes(problem(sloped(4, 2, 32), 3, 50, 31), 5)),
		"slopes, shown, holes, decode": shown(holes(problem(sloped(4, 2, 32), 3, 1, 301), 5)),
		"slopes, shown, both ways":     shown(holes(problem(with(sloped(4, 2, 32), func(a *rope.Attention) { a.Mask.Causal = false }), 3, 300, 0), 6)),
		"slopes, shown, no mask":       shown(problem(sloped(4, 2, 32), 1, 20, 5)),
		"slopes beside a rotation":     problem(with(sloped(4, 2, 32), func(a *rope.Attention) { a.Encoding.Frequencies = frequencies(32, 10000) }), 2, 40, 7),
		"slopes, softcap, sinks":       problem(with(sloped(4, 2, 32), func(a *rope.Attention) { a.Softcap, a.Sinks = 5, []float64{1, 2, 3, 4} }), 2, 40, 7),
		"slopes, documents":            packed(problem(documented(sloped(4, 2, 32), rope.AnchorDocument), 2, 90, 0), 0, 17, 40),
		"buckets, one way":             problem(bucketed(4, 2, 32, encoding.T5{}), 2, 300, 0),
		"buckets, decode":              problem(bucketed(4, 2, 32, encoding.T5{}), 2, 1, 700),
		"buckets, both ways":           problem(both, 2, 300, 0),
		"buckets, both ways, padded":   leftPadded(problem(both, 3, 150, 0), 0, 13, 149),
		"buckets, shown, holes":        shown(holes(problem(both, 2, 200, 0), 3)),
		"buckets, window":              problem(with(bucketed(4, 2, 32, encoding.T5{}), func(a *rope.Attention) { a.Mask.Window = 33 }), 2, 150, 40),
		"buckets and slopes":           problem(with(both, func(a *rope.Attention) { a.Distance.Slopes = []float64{0.5, -0.25, 0, 2} }), 2, 80, 0),
		"one bucket": problem(with(sloped(4, 2, 32), func(a *rope.Attention) {
			a.Distance = rope.Distance{Starts: []int64{1000}, Biases: [][]float64{{1, 2, 3, 4}}}
		}), 1, 20, 0),
	}
	biased := problem(with(both, func(a *rope.Attention) { a.Softcap = 3 }), 2, 40, 0)
	biased.Bias = biases(filled(biased, 0), 1, 6)
	list["buckets beside a bias"] = biased
	return list
}

// TestDistances: slopes and buckets against the reference in float64, by the kernel and by the fallback.
func TestDistances(t *testing.T) {
	for name, p := range testsample.OfMap(t, distanceCases(), 12) {
		t.Run(name, func(t *testing.T) {
			for _, flat := range []bool{false, true} {
				settle(t, p, flat)
			}
		})
	}
}

// TestDistancesInChunks: a text in chunks is the whole text.
func TestDistancesInChunks(t *testing.T) {
	for name, whole := range map[string]ref.Problem{
		"slopes":        problem(sloped(4, 2, 32), 2, 90, 0),
		"slopes, shown": shown(holes(problem(sloped(4, 2, 32), 2, 90, 0), 9)),
		"buckets":       problem(bucketed(4, 2, 32, encoding.T5{Buckets: 8, MaxDistance: 40}), 2, 90, 0),
	} {
		t.Run(name, func(t *testing.T) { chunksAreTheWhole(t, whole) })
	}
}

// TestFallbackOfDistancesAtOpsets: the fallback of distances in each version of the operators.
func TestFallbackOfDistancesAtOpsets(t *testing.T) {
	for _, opset := range testsample.Of(t, []int64{13, 15, 18, 23}, 2) {
		for _, name := range []string{"slopes, shown, holes", "buckets and slopes"} {
			p := filled(distanceCases()[name], 1)
			in := feedsOf(p, false)
			s, err := definedAt(false, opset)(t, []*onnx.Node{nodeOf(t, p)}, typesOf(in), 1)
			if err != nil {
				t.Fatalf("%s, opset %d: %v", name, opset, err)
			}
			got, err := s.run(in)
			if err != nil {
				t.Fatalf("%s, opset %d: %v", name, opset, err)
			}
			compare(t, p, false, got)
		}
	}
}

// TestDistancesAreRefused: by the builder and by the session.
func TestDistancesAreRefused(t *testing.T) {
	list := map[string]damage{
		"slopes of other heads": {setting(onnx.FloatsAttr("distance_slopes", 1, 2, 3)), []string{"distance_slopes", "3", "4 heads"}},
		"biases alone":          {setting(onnx.FloatsAttr("distance_biases", 1, 2, 3, 4)), []string{"distance_biases", "4", "0 buckets"}},
		"shown alone":           {setting(onnx.IntAttr("distance_shown", 1)), []string{"distance_shown", "distance_slopes"}},
		"starts that fall": {func(n *onnx.Node) {
			n.SetAttribute(onnx.IntsAttr("distance_starts", 3, 3))
			n.SetAttribute(onnx.FloatsAttr("distance_biases", 1, 2, 3, 4, 5, 6, 7, 8))
		}, []string{"distance_starts", "3"}},
	}
	refuseNodes(t, maps.Clone(list))
	for name, op := range map[string]customop.RotaryAttention{
		"slopes of other heads": {NumHeads: 4, KVNumHeads: 4, DistanceSlopes: []float32{1}},
		"biases alone":          {NumHeads: 4, KVNumHeads: 4, DistanceBiases: []float32{1}},
		"shown alone":           {NumHeads: 4, KVNumHeads: 4, DistanceShown: 1},
		"starts that fall":      {NumHeads: 1, KVNumHeads: 1, DistanceStarts: []int64{1, 1}, DistanceBiases: []float32{1, 2}},
		"another text":          {NumHeads: 1, KVNumHeads: 1, Cross: 1, DistanceSlopes: []float32{1}},
	} {
		op.Query, op.Key, op.Value, op.Output = "q", "k", "v", "o"
		if _, err := op.Node("attention 3"); err == nil {
			t.Errorf("%s: the builder writes it", name)
		}
	}
}
