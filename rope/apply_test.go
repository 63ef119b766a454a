package rope_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// llama is an attention as it is measured in an unscaled model.
func llama() rope.Attention {
	a := rope.Attention{Heads: 8, KVHeads: 2, HeadSize: 64, Mask: rope.Mask{Causal: true, Padding: true}}
	for i := range 32 {
		omega := float32(math.Pow(10000, -float64(i)/32))
		a.Encoding.Frequencies = append(a.Encoding.Frequencies, float64(omega))
	}
	return a
}

func apply(t testing.TB, axis rope.Axis, text string, a rope.Attention, c rope.Context) (rope.Attention, []string, error) {
	t.Helper()
	s, err := rope.ParseSpec(axis, text)
	if err != nil {
		t.Fatal(err)
	}
	return s.Apply(a, c)
}

// Apply never changes its argument, and shares no memory with it.
func TestApplyLeavesArgument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, before := llama(), llama()
		edited, _, err := drawSpec(t).Apply(a, rope.Context{Length: 32768, Original: 8192})
		if !reflect.DeepEqual(a, before) {
			t.Fatal("the argument was changed")
		}
		if err == nil {
			edited.Encoding.Frequencies[0] = 7
			if !reflect.DeepEqual(a, before) {
				t.Fatal("the result shares memory with the argument")
			}
		}
	})
}

func TestTheta(t *testing.T) {
	a, _, err := apply(t, rope.ScalingAxis, "theta:rope_theta=1000000", llama(), rope.Context{})
	if err != nil {
		t.Fatal(err)
	}
	if base, ok := a.Encoding.Base(); !ok || base != 1e6 {
		t.Errorf("base %v %v after theta", base, ok)
	}
}

// temperature is λ on the whole score and does not change the rotation's gain.
func TestYarnTemperature(t *testing.T) {
	with, _, err := apply(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=2048,temperature=1.5", llama(), rope.Context{})
	if err != nil {
		t.Fatal(err)
	}
	without, _, err := apply(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=2048", llama(), rope.Context{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := with.Scale, 1.5/8; got != want || with.Encoding.Gain != 0 {
		t.Errorf("scale %v gain %v, want scale %v and no gain", got, with.Encoding.Gain, want)
	}
	if got, want := without.Encoding.Gain, 0.1*math.Log(4)+1; without.Scale != 0 || math.Abs(got-want) > 1e-15 {
		t.Errorf("scale %v gain %v, want no scale and gain %v", without.Scale, got, want)
	}
	if !slices.Equal(with.Encoding.Frequencies, without.Encoding.Frequencies) {
		t.Error("temperature changes the frequencies")
	}
}

// The distances that the rotation sees, L = 9, S = 3, before W: the
// last row is 5 4 3 2 1 0 2 1 0. And for any S, W: equation 4.
func TestStringDistances(t *testing.T) {
	distances := func(a rope.Attention, i int) (row []float64) {
		for j := range i + 1 {
			found := -1
			for b, band := range a.Bands {
				if d := int64(i - j); d >= band.Start && (b+1 == len(a.Bands) || d < a.Bands[b+1].Start) {
					if found >= 0 {
						t.Fatalf("distance %d lies in the bands %d and %d", d, found, b)
					}
					found = b
				}
			}
			if found < 0 {
				t.Fatalf("distance %d lies in no band", i-j)
			}
			band := a.Bands[found]
			row = append(row, band.QueryScale*float64(i)+band.QueryOffset-band.KeyScale*float64(j))
		}
		return row
	}
	a, _, err := apply(t, rope.PositionsAxis, "string:shift=3,window=0", llama(), rope.Context{Length: 9})
	if err != nil {
		t.Fatal(err)
	}
	if got := distances(a, 8); !slices.Equal(got, []float64{5, 4, 3, 2, 1, 0, 2, 1, 0}) {
		t.Errorf("last row %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.Int64Range(1, 300).Draw(t, "S")
		w := rapid.Int64Range(0, s-1).Draw(t, "W")
		spec := rope.Spec{Axis: rope.PositionsAxis, Name: "string", Params: map[string]rope.Value{"shift": rope.Integer(s), "window": rope.Integer(w)}}
		a, _, err := spec.Apply(llama(), rope.Context{})
		if err != nil {
			t.Fatal(err)
		}
		i := rapid.IntRange(0, 400).Draw(t, "i")
		for j, got := range distances(a, i) {
			want := int64(i - j)
			if want >= s {
				want += w - s
			}
			if got != float64(want) {
				t.Fatalf("S %d W %d: distance %d is met at %g, want %d", s, w, i-j, got, want)
			}
		}
	})
}

func TestBaseRefusals(t *testing.T) {
	for name, frequencies := range map[string][]float64{
		"none":            nil,
		"one pair":        {1},
		"zero":            {1, 0},
		"NaN":             {1, math.NaN()},
		"rising":          {1, 2, 4},
		"constant":        {1, 1, 1},
		"one off by 1e-6": {1, 0.1 * (1 + 1e-6), 0.01},
	} {
		if base, ok := (rope.Encoding{Frequencies: frequencies}).Base(); ok {
			t.Errorf("%s: base %v", name, base)
		}
	}
	for _, frequencies := range [][]float64{{1, 0.1, 0.01}, {-1, -0.1, -0.01}, {1, -0.1, 0.01}} {
		if base, ok := (rope.Encoding{Frequencies: frequencies}).Base(); !ok || base != 1000 {
			t.Errorf("%v: base %v %v, want 1000", frequencies, base, ok)
		}
	}
}

func TestAliases(t *testing.T) {
	if _, ok := llama().Encoding.Aliases(); ok {
		t.Error("ordinary frequencies alias")
	}
	if pair, ok := (rope.Encoding{Frequencies: []float64{1, -3.2}}).Aliases(); !ok || pair != 1 {
		t.Errorf("pair %d %v, want pair 1", pair, ok)
	}
}

// TestNTK compares with the definition: the base times alpha^(n/(n−2)).
func TestNTK(t *testing.T) {
	for _, c := range []struct {
		n           int
		base, alpha float64
	}{{4, 10000, 2}, {16, 10000, 4}, {64, 500000, 8}, {128, 1e6, 1}, {6, 10000, 40}} {
		var frequencies, want []float64
		for i := range c.n / 2 {
			frequencies = append(frequencies, math.Pow(c.base, -2*float64(i)/float64(c.n)))
			raised := c.base * math.Pow(c.alpha, float64(c.n)/float64(c.n-2))
			want = append(want, math.Pow(raised, -2*float64(i)/float64(c.n)))
		}
		a := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: c.n, Encoding: rope.Encoding{Frequencies: frequencies}}
		got, _, err := rope.Spec{Axis: rope.ScalingAxis, Name: "ntk", Params: map[string]rope.Value{"alpha": rope.Number(c.alpha)}}.Apply(a, rope.Context{})
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if off := ulps(got.Encoding.Frequencies[i], w); off > 1 {
				t.Errorf("%+v: pair %d turns by %v, want %v (%.1f ulp)", c, i, got.Encoding.Frequencies[i], w, off)
			}
		}
	}
}

// A configuration that is there and cannot be read is not asked for: the error says why it cannot.
func TestUnreadConfiguration(t *testing.T) {
	two := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 4, Encoding: rope.Encoding{Frequencies: []float64{1, 0.01}}}
	unread := errors.New("config.json is broken")
	for _, text := range []string{"yarn:factor=2", "linear", "dynamic"} {
		spec, err := rope.ParseSpec(rope.ScalingAxis, text)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = spec.Apply(two, rope.Context{Length: 128, Unread: unread})
		if !errors.Is(err, unread) || strings.Contains(err.Error(), "put the model's config.json beside it") {
			t.Errorf("%s: %v", text, err)
		}
		if _, _, err := spec.Apply(two, rope.Context{Length: 128, Original: 64, Unread: unread}); err != nil {
			t.Errorf("%s, with the trained context: %v", text, err)
		}
	}
}

// TestScalingNeeds: what a method cannot do without is asked for by its key.
func TestScalingNeeds(t *testing.T) {
	two := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 4, Encoding: rope.Encoding{Frequencies: []float64{1, 0.01}}}
	one := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 2, Encoding: rope.Encoding{Frequencies: []float64{1}}}
	for _, c := range []struct {
		spec string
		a    rope.Attention
		want string
	}{
		{"ntk", two, "alpha="},
		{"ntk:alpha=2", one, "two"},
		{"llama3:factor=8,low_freq_factor=1,high_freq_factor=4", two, "original_max_position_embeddings="},
		{"llama3:factor=8,high_freq_factor=4,original_max_position_embeddings=64", two, "low_freq_factor="},
		{"llama3:factor=8,low_freq_factor=1,original_max_position_embeddings=64", two, "high_freq_factor="},
		{"llama3:factor=8,low_freq_factor=4,high_freq_factor=4,original_max_position_embeddings=64", two, "must be above low_freq_factor"},
		{"llama3:low_freq_factor=1,high_freq_factor=4,original_max_position_embeddings=64", two, "factor="},
	} {
		spec, err := rope.ParseSpec(rope.ScalingAxis, c.spec)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := spec.Apply(c.a, rope.Context{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error %v does not say %q", c.spec, err, c.want)
		}
	}
}
