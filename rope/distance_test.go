package rope_test

import (
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// sloped is an attention with ALiBi's slopes, bucketed one with buckets of distances.
func sloped(a *rope.Attention) {
	a.Encoding.Frequencies = nil
	a.Distance = rope.Distance{Slopes: []float64{0.25, 0.1}}
	a.Heads = 2
}

func bucketed(a *rope.Attention) {
	a.Encoding.Frequencies = nil
	a.Distance = rope.Distance{Starts: []int64{0, 4}, Biases: [][]float64{{1, 2}, {3, 4}}}
	a.Heads = 2
}

// TestMethodsOfDistances: which methods change a bias by distance, and what the others say.
func TestMethodsOfDistances(t *testing.T) {
	slopes, buckets := changed(sloped), changed(bucketed)
	both := changed(func(a *rope.Attention) { a.Distance.Slopes = []float64{0.5} })
	check(t, rope.ScalingAxis, []applyCase{
		{text: "none", a: slopes},
		{text: "linear:factor=2", a: slopes},
		{text: "linear:factor=2", a: both},
		{text: "linear", a: slopes, c: rope.Context{Length: 4096, Original: 2048}},
		{text: "linear", a: slopes, err: "give factor="},
		{text: "linear:factor=2,rope_theta=500", a: slopes, err: "has no rotation to change: its heads take a slope"},
		{text: "linear:factor=2", a: buckets, err: "a learned number for each range of distances (T5), which no method scales"},
		{text: "yarn:factor=2", a: slopes, err: "--scaling linear:factor= divides the slopes"},
		{text: "log-n", a: slopes, err: "has no rotation to change"},
		{text: "nope", a: buckets, err: "has no rotation to change"},
	})
	check(t, rope.PositionsAxis, []applyCase{
		{text: "identity", a: slopes},
		{text: "rerope:window=4", a: slopes, err: "its heads take a slope times the distance"},
		{text: "rerope:window=4", a: both, err: "also has a bias by distance"},
		{text: "randomized:range=100", a: buckets, err: "which no method scales"},
		{text: "randomized:range=100", a: both, err: "goes by indices"},
	})
	check(t, rope.MaskAxis, []applyCase{
		{text: "sliding-window:window=4", a: slopes},
		{text: "intra-document", a: buckets},
		{text: "intra-document-reset", a: slopes, err: "does not go by positions"},
		{text: "anchor:restart=true", a: slopes, err: "does not go by positions"},
	})
}

// TestScaledSlopes: linear divides slopes as it divides frequencies, and leaves the argument.
func TestScaledSlopes(t *testing.T) {
	a := changed(sloped)
	got, _, err := apply(t, rope.ScalingAxis, "linear:factor=3", a, rope.Context{})
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{float64(float32(0.25 / 3)), float64(float32(0.1 / 3))}
	if !slices.Equal(got.Distance.Slopes, want) || got.Encoding.Frequencies != nil {
		t.Errorf("the slopes are %v, %v was expected; frequencies %v", got.Distance.Slopes, want, got.Encoding.Frequencies)
	}
	if !slices.Equal(a.Distance.Slopes, []float64{0.25, 0.1}) {
		t.Errorf("the argument's slopes became %v", a.Distance.Slopes)
	}
}

// TestCloneDistance: a copy shares no list of a bias by distance.
func TestCloneDistance(t *testing.T) {
	a := changed(bucketed)
	a.Distance.Slopes = []float64{1, 2}
	b := a.Clone()
	b.Distance.Slopes[0], b.Distance.Starts[0], b.Distance.Biases[0][0] = 9, 9, 9
	b.Distance.Biases[1] = nil
	if a.Distance.Slopes[0] != 1 || a.Distance.Starts[0] != 0 || a.Distance.Biases[0][0] != 1 || a.Distance.Biases[1] == nil {
		t.Errorf("the copy changed the original: %+v", a.Distance)
	}
}
