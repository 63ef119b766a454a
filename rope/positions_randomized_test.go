package rope_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Draws as a few lines of Python make them from the published splitmix64.
func TestDrawnPositions(t *testing.T) {
	for _, c := range []struct {
		drawn rope.Drawn
		want  []int64
	}{
		{rope.Drawn{Range: 20, Seed: 0}, []int64{3, 5, 7, 10, 11, 14, 16, 18}},
		{rope.Drawn{Range: 1000, Seed: 3}, []int64{139, 197, 643, 835, 861, 948}},
		{rope.Drawn{Range: 131072, Seed: 4294967295}, []int64{30448, 38843, 49765, 88539, 120500}},
	} {
		if got := c.drawn.Positions(len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.drawn, got, c.want)
		}
	}
}

// n tokens stand at n different positions of the range in rising order, and a
// longer text draws all that a shorter one does.
func TestDrawnProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rope.Drawn{Range: rapid.Int64Range(2, 500).Draw(t, "range"), Seed: rapid.Int64Range(0, 1<<32-1).Draw(t, "seed")}
		n := rapid.IntRange(1, int(d.Range)-1).Draw(t, "n")
		got, more := d.Positions(n), d.Positions(n+1)
		for i, p := range got {
			if p < 0 || p >= d.Range || i > 0 && p <= got[i-1] || !slices.Contains(more, p) {
				t.Fatalf("%v, one more %v", got, more)
			}
		}
	})
}

// The gain of STRING's authors stands beside that of a scaling.
func TestStringGain(t *testing.T) {
	a, _, err := apply(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=2048,attention_factor=1.5", llama(), rope.Context{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]float64{"string:shift=2730,attention_factor=1.25": 1.875, "string:shift=2730": 1.5, "string:shift=128,attention_factor=1.25": 1.875} {
		got, _, err := apply(t, rope.PositionsAxis, text, a, rope.Context{})
		if err != nil || got.Encoding.Gain != want {
			t.Errorf("%s: gain %v, want %v (%v)", text, got.Encoding.Gain, want, err)
		}
	}
}
