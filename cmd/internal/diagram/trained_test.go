package diagram_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/diagram"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// Rows of 8 tokens, counted by hand: documents of 5, 6 and 11 tokens become pieces of 5, 3, 3, 5 and 6.
func TestTrainedDistances(t *testing.T) {
	want := make([]float64, 6)
	for _, n := range []int{5, 3, 3, 5, 6} {
		for d := range n {
			want[d] += float64(n-d) / 22
		}
	}
	if got := diagram.TrainedDistances([]int64{5, 6, 11}, 8); !slices.EqualFunc(got, want, near) {
		t.Errorf("%v, want %v", got, want)
	}
	// A document of several rows, from the middle of one on: pieces of 2, 6, 8, 8 and 3.
	want = make([]float64, 8)
	for _, n := range []int{2, 6, 8, 8, 3} {
		for d := range n {
			want[d] += float64(n-d) / 27
		}
	}
	if got := diagram.TrainedDistances([]int64{2, 25}, 8); !slices.EqualFunc(got, want, near) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The documents of each length have as many tokens, and they fill rows without a cut.
func TestMix(t *testing.T) {
	want := slices.Concat([]int64{256}, slices.Repeat([]int64{128}, 2), slices.Repeat([]int64{64}, 4))
	if got := diagram.Mix(256); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := diagram.Mix(8); !slices.Equal(got, []int64{8}) {
		t.Errorf("of 8 tokens: %v", got)
	}
	// A token of a row of 256 has a key at distance 100 in the first two lengths alone.
	if got := diagram.TrainedDistances(diagram.Mix(256), 256)[100]; !near(got, (156.+2*28)/768) {
		t.Errorf("at distance 100: %g", got)
	}
}

// Every pair of a query and a key is counted, whatever the map is.
func TestDistances(t *testing.T) {
	for _, spec := range []string{
		"positions identity", "positions string:shift=9,window=4", "positions rerope:window=7", "positions self-extend:window=6,group=4", "positions leaky-rerope:window=6,factor=4",
		"positions dual-chunk:chunk_size=10,local_size=3", "mask sliding-window:window=8", "mask first-keys:window=8,count=3",
	} {
		const length = 30
		axis, text := rope.PositionsAxis, spec[len("positions "):]
		if spec[:4] == "mask" {
			axis, text = rope.MaskAxis, spec[len("mask "):]
		}
		a := edited(t, axis, text)
		see, err := ref.Sight(a, nil, length)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, length)
		for query := range length {
			for key := range query + 1 {
				if d, visible := see(query, key); visible {
					want[int(math.Round(d))] += 1. / length
				}
			}
		}
		for want[len(want)-1] == 0 {
			want = want[:len(want)-1]
		}
		got, err := diagram.Distances(a, length)
		if err != nil || !slices.EqualFunc(got, want, near) {
			t.Errorf("%s: %v, %v, want %v", spec, got, err, want)
		}
	}
}

// STRING of shift 4 and window 2 on 7 tokens: by hand from the matrix of TestPositions, there are 7
// pairs at distance 0, 6 at 1, 8 at 2, 6 at 3 and 1 at 4.
func TestTrained(t *testing.T) {
	list := []diagram.Named{{Name: "string", Attention: edited(t, rope.PositionsAxis, "string:shift=4,window=2")}}
	f, reaches, err := diagram.Trained([]int64{3, 3}, 4, list, 7)
	if err != nil {
		t.Fatal(err)
	}
	// Pieces of 3, 1 and 2 tokens.
	if got := f.Series[0]; !slices.EqualFunc(got.Y, []float64{1, 3. / 6, 1. / 6, 0}, near) || !slices.Equal(got.X, []float64{0, 1, 2, 3}) {
		t.Errorf("in training: %v at %v", got.Y, got.X)
	}
	if got := f.Series[1].Y; !slices.EqualFunc(got, []float64{1, 6. / 7, 8. / 7, 6. / 7, 1. / 7, 0}, near) {
		t.Errorf("with STRING: %v", got)
	}
	want := []diagram.Reach{{Name: "training", Largest: 2, Keys: 1. / 6, Trained: 1. / 6}, {Name: "string", Largest: 4, Keys: 1. / 7}}
	if !slices.EqualFunc(reaches, want, func(a, b diagram.Reach) bool {
		return a.Name == b.Name && a.Largest == b.Largest && near(a.Keys, b.Keys) && near(a.Trained, b.Trained)
	}) {
		t.Errorf("%+v, want %+v", reaches, want)
	}

	long, _, err := diagram.Trained(diagram.Mix(10000), 10000, nil, 10000)
	if n := len(long.Series[0].X); err != nil || n > 1025 || long.Series[0].X[n-1] != 10000 {
		t.Errorf("10,000 distances are %d points up to %g, %v", n, long.Series[0].X[n-1], err)
	}
}

func TestDistancesRefused(t *testing.T) {
	sees := attention()
	sees.Mask.Causal = false
	drawn := attention()
	drawn.Drawn.Range = 100
	far := edited(t, rope.MaskAxis, "first-keys:window=8,count=3")
	for name, a := range map[string]rope.Attention{"bidirectional": sees, "drawn": drawn, "without a rotation": {}} {
		if _, err := diagram.Distances(a, 20); err == nil {
			t.Errorf("the distances of an attention that is %s were counted", name)
		}
	}
	if _, err := diagram.Distances(far, 1<<20); err == nil {
		t.Error("2^40 pairs were counted")
	}
}
