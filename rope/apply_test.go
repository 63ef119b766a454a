package rope_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// llama is an attention as a lift of an unscaled model gives it.
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

func TestApplyWarningsAndErrors(t *testing.T) {
	scaled := llama()
	for i := range scaled.Encoding.Frequencies {
		scaled.Encoding.Frequencies[i] /= 4
	}
	gained := llama()
	gained.Encoding.Gain = 1.2
	fast := llama()
	fast.Encoding.Frequencies[0] = 2 * math.Pi * 0.9
	still := llama()
	still.Encoding.Frequencies = nil
	both := llama()
	both.Mask.Causal = false
	banded := llama()
	banded.Bands = []rope.Band{{QueryScale: 1, KeyScale: 1}}
	windowed := llama()
	windowed.Mask.Window = 1000
	twoBands := llama()
	warm, partial := llama(), llama()
	warm.Temperature = rope.Temperature{Slope: 1}
	partial.Encoding.Frequencies = partial.Encoding.Frequencies[:16]
	twoBands.Bands = []rope.Band{{QueryScale: 1, KeyScale: 1}, {Start: 100, QueryScale: 1, QueryOffset: -60, KeyScale: 1}}
	restarted := llama()
	restarted.Mask.Documents, restarted.Mask.Restart = rope.IntraDocument, true
	raw, drawn := llama(), llama()
	raw.Cache, drawn.Drawn.Range = rope.Raw, 1000
	sinks := windowed
	sinks.Mask.FirstKeys = 4
	biased := llama()
	biased.Mask.Bias = true

	const yarn = "yarn:factor=4,original_max_position_embeddings=2048"
	for _, c := range []struct {
		axis    rope.Axis
		text    string
		a       rope.Attention
		c       rope.Context
		warning string // part of the only warning
		err     string
	}{
		{axis: rope.ScalingAxis, text: "none", a: still},
		{axis: rope.ScalingAxis, text: "none:partial_rotary_factor=0.5", a: llama(), err: "rotates 32 of 64 channels, but the graph rotates 64"},
		{axis: rope.ScalingAxis, text: yarn, a: llama()},
		{axis: rope.ScalingAxis, text: yarn + ",partial_rotary_factor=1", a: llama()},
		{axis: rope.ScalingAxis, text: yarn, a: llama(), c: rope.Context{Length: 9000}, warning: "factor=4 reaches 8192 tokens"},
		{axis: rope.ScalingAxis, text: yarn, a: llama(), c: rope.Context{Length: 8192}},
		{axis: rope.ScalingAxis, text: yarn, a: llama(), c: rope.Context{Length: 8191}, warning: "reaches 8192 tokens from a trained context of 2048, more than the context 8191"},
		{axis: rope.ScalingAxis, text: yarn, a: llama(), c: rope.Context{Length: 2048}, warning: "does not exceed the trained context of 2048"},
		{axis: rope.ScalingAxis, text: "linear:factor=1", a: llama(), c: rope.Context{Length: 1024, Original: 2048}},
		{axis: rope.ScalingAxis, text: "linear:factor=8192", a: llama(), c: rope.Context{Original: 2048}},
		{axis: rope.ScalingAxis, text: "linear:factor=8193", a: llama(), c: rope.Context{Original: 2048}, warning: "factor=8193 reaches beyond the 16777216 positions"},
		{axis: rope.ScalingAxis, text: "linear:factor=1e9", a: llama(), c: rope.Context{Length: 4096}, warning: "reaches beyond the 16777216 positions"},
		{axis: rope.ScalingAxis, text: "ntk:alpha=1e9", a: llama(), warning: "alpha=1000000000 reaches beyond the 16777216 positions"},
		{axis: rope.ScalingAxis, text: "ntk:alpha=4", a: llama(), c: rope.Context{Length: 4096, Original: 2048}},
		{axis: rope.ScalingAxis, text: "yarn", a: llama(), c: rope.Context{Length: 8192, Original: 2048}},
		{axis: rope.ScalingAxis, text: "yarn:factor=4", a: llama(), err: "give original_max_position_embeddings="},
		{axis: rope.ScalingAxis, text: "yarn", a: llama(), c: rope.Context{Original: 2048}, err: "give factor=, or both the context"},
		{axis: rope.ScalingAxis, text: "yarn", a: llama(), c: rope.Context{Length: 1024, Original: 2048}, err: "shorter than the trained context"},
		{axis: rope.ScalingAxis, text: yarn + ",base=carried", a: scaled, err: "not the powers of one base: pair 0 has 0.25"},
		{axis: rope.ScalingAxis, text: yarn + ",base=carried", a: scaled, c: rope.Context{Theta: 10000}, err: "give rope_theta=10000 (the configuration's)"},
		{axis: rope.ScalingAxis, text: yarn + ",rope_theta=10000", a: scaled, warning: "replaces the graph's frequencies"},
		{axis: rope.ScalingAxis, text: yarn + ",rope_theta=10000", a: llama()},
		{axis: rope.ScalingAxis, text: yarn + ",rope_theta=100000", a: llama(), warning: "rope_theta=100000 replaces the graph's base 10000"},
		{axis: rope.ScalingAxis, text: yarn, a: fast, err: "more than π"},
		{axis: rope.ScalingAxis, text: yarn, a: still, err: "no rotation"},
		{axis: rope.ScalingAxis, text: yarn, a: gained, warning: "own gain 1.2"},
		{axis: rope.ScalingAxis, text: yarn + ",temperature=1.3", a: gained},
		{axis: rope.ScalingAxis, text: yarn + ",temperature=1.3,attention_factor=1", a: llama(), err: "temperature and attention_factor"},
		{axis: rope.ScalingAxis, text: yarn + ",temperature=1.3,mscale=1", a: llama(), err: "temperature and mscale"},
		{axis: rope.ScalingAxis, text: yarn + ",mscale=1", a: llama(), warning: "only work together"},
		{axis: rope.ScalingAxis, text: yarn + ",mscale=1,mscale_all_dim=0.5,attention_factor=1", a: llama(), warning: "not used, because attention_factor"},
		{axis: rope.ScalingAxis, text: yarn + ",beta_fast=1,beta_slow=2", a: llama(), err: "beta_fast=1 must not be below beta_slow=2"},
		{axis: rope.ScalingAxis, text: "yarn:factor=4,original_max_position_embeddings=4", a: llama(), warning: "no room"},
		{axis: rope.ScalingAxis, text: "linear:factor=4,base=carried", a: scaled},
		{axis: rope.ScalingAxis, text: "beta-ary:factor=4,b=300", a: llama(), err: "would turn by NaN per position; give less extreme numbers"},
		{axis: rope.ScalingAxis, text: "linear", a: llama(), c: rope.Context{Length: 4096, Original: 2048}},
		{axis: rope.ScalingAxis, text: "linear", a: llama(), err: "give factor="},
		{axis: rope.ScalingAxis, text: "linear:factor=2", a: fast, err: "more than π"},
		{axis: rope.ScalingAxis, text: "linear:factor=2,rope_theta=10000", a: fast, warning: "replaces the graph's frequencies"},
		{axis: rope.ScalingAxis, text: "theta:rope_theta=500000", a: fast},
		{axis: rope.ScalingAxis, text: "theta", a: llama(), err: "give the new base, rope_theta="},
		{axis: rope.ScalingAxis, text: "theta:rope_theta=500000", a: still, err: "no rotation"},

		{axis: rope.PositionsAxis, text: "identity", a: both},
		{axis: rope.PositionsAxis, text: "string", a: llama(), c: rope.Context{Length: 8192}},
		{axis: rope.PositionsAxis, text: "string:shift=2730", a: llama()},
		{axis: rope.PositionsAxis, text: "string", a: llama(), err: "neither shift= nor the context is given"},
		{axis: rope.PositionsAxis, text: "string", a: llama(), c: rope.Context{Length: 2}, err: "too short to take a third of"},
		{axis: rope.PositionsAxis, text: "string", a: llama(), c: rope.Context{Length: 100}, err: "window=128 must not exceed shift=33"},
		{axis: rope.PositionsAxis, text: "string:shift=100,window=101", a: llama(), err: "window=101 must not exceed shift=100"},
		{axis: rope.PositionsAxis, text: "string:shift=100,window=100", a: llama(), warning: "changes no distance"},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: llama(), c: rope.Context{Length: 7001}, warning: "outside 1/7 to 1/2"},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: llama(), c: rope.Context{Length: 7000}},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: llama(), c: rope.Context{Length: 2000}},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: llama(), c: rope.Context{Length: 1999}, warning: "outside 1/7 to 1/2"},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: llama(), c: rope.Context{Length: 1000}, warning: "no effect within the context"},
		{axis: rope.PositionsAxis, text: "string:shift=1000,window=31", a: llama(), warning: "below 32"},
		{axis: rope.PositionsAxis, text: "string:shift=1000,window=32", a: llama()},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: windowed, warning: "no effect: the attention's sliding window of 1000"},
		{axis: rope.PositionsAxis, text: "string:shift=999", a: windowed},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: sinks},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: both, err: "bidirectional"},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: banded, err: "already has a position map"},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: still, err: "no rotation"},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: restarted, err: "positions begin anew in each document (--mask)"},

		{axis: rope.PositionsAxis, text: "rerope", a: llama(), err: "window= is missing"},
		{axis: rope.PositionsAxis, text: "rerope", a: llama(), c: rope.Context{Original: 2048}},
		{axis: rope.PositionsAxis, text: "rerope:window=L/4", a: llama(), c: rope.Context{Length: 4096}},
		{axis: rope.PositionsAxis, text: "rerope:window=L/4", a: llama(), err: "window=L/4 is a share of the context, which is not given"},
		{axis: rope.PositionsAxis, text: "rerope:window=L/8", a: llama(), c: rope.Context{Length: 4}, err: "window=0 must be ≥ 1"},
		{axis: rope.PositionsAxis, text: "rerope:window=64", a: both, err: "bidirectional"},
		{axis: rope.PositionsAxis, text: "rerope:window=64", a: restarted, err: "positions begin anew"},
		{axis: rope.PositionsAxis, text: "rerope:window=1000", a: windowed, warning: "no effect: the attention's sliding window of 1000"},
		{axis: rope.PositionsAxis, text: "leaky-rerope:window=64", a: llama(), err: "give factor="},
		{axis: rope.PositionsAxis, text: "leaky-rerope:window=64,factor=4", a: llama(), c: rope.Context{Length: 4096, Original: 128}, warning: "these settings reach 320, less than the context 4096"},
		{axis: rope.PositionsAxis, text: "leaky-rerope:window=64,factor=4", a: banded, err: "already has a position map"},
		{axis: rope.PositionsAxis, text: "self-extend:window=64", a: llama(), err: "group= is missing"},
		{axis: rope.PositionsAxis, text: "self-extend:group=4", a: llama(), err: "window= is missing"},
		{axis: rope.PositionsAxis, text: "self-extend:window=3,group=4", a: llama(), err: "window must not be below group"},
		{axis: rope.PositionsAxis, text: "self-extend:window=64,group=1", a: llama(), warning: "changes nothing"},
		{axis: rope.PositionsAxis, text: "self-extend:window=64,group=4", a: llama(), c: rope.Context{Length: 4096, Original: 128}, warning: "these settings reach 320"},
		{axis: rope.PositionsAxis, text: "dual-chunk:chunk_size=64", a: llama(), err: "local_size= is missing"},
		{axis: rope.PositionsAxis, text: "dual-chunk:chunk_size=64,local_size=64", a: llama(), err: "local_size=64 must be below chunk_size=64"},
		{axis: rope.PositionsAxis, text: "dual-chunk:chunk_size=64,local_size=8", a: llama(), c: rope.Context{Original: 32}, warning: "exceeds the trained context 32"},
		{axis: rope.PositionsAxis, text: "dual-chunk:chunk_size=64,local_size=8,original_max_position_embeddings=64", a: llama(), err: "the temperature needs the context"},
		{axis: rope.PositionsAxis, text: "dual-chunk:chunk_size=64,local_size=8", a: still, err: "no rotation"},

		{axis: rope.PositionsAxis, text: "randomized:range=L/1", a: llama(), c: rope.Context{Length: 4096}},
		{axis: rope.PositionsAxis, text: "randomized", a: llama(), err: "give range="},
		{axis: rope.PositionsAxis, text: "randomized:range=1000", a: llama(), c: rope.Context{Length: 1001}, err: "range=1000 has fewer positions than the context 1001"},
		{axis: rope.PositionsAxis, text: "randomized:range=5000000", a: llama(), err: "range=5000000 is more than 4194304"},
		{axis: rope.PositionsAxis, text: "randomized:range=1000", a: still, err: "no rotation"},
		{axis: rope.PositionsAxis, text: "randomized:range=1000", a: twoBands, err: "already has a position map"},
		{axis: rope.PositionsAxis, text: "randomized:range=1000", a: raw, err: "--cache raw"},
		{axis: rope.PositionsAxis, text: "string:shift=1000", a: drawn, err: "drawn at random"},
		{axis: rope.MaskAxis, text: "intra-document-reset", a: drawn, err: "drawn at random"},
		{axis: rope.MaskAxis, text: "intra-document-reset", a: raw, err: "cached un-rotated"},
		{axis: rope.MaskAxis, text: "anchor:restart=true", a: raw, err: "cached un-rotated"},
		{axis: rope.MaskAxis, text: "first-keys:window=512,positions=cache", a: drawn, err: "drawn at random"},
		{axis: rope.ScalingAxis, text: yarn + ",ramp=ratio", a: llama()},
		{axis: rope.ScalingAxis, text: yarn + ",tau=8", a: llama(), err: "tau= has no meaning without ramp=ratio"},
		{axis: rope.ScalingAxis, text: yarn + ",ramp=ratio,beta_fast=8", a: llama(), err: "beta_fast= has no meaning with ramp=ratio"},
		{axis: rope.ScalingAxis, text: "log-n", a: llama(), err: "give original_max_position_embeddings="},
		{axis: rope.ScalingAxis, text: "log-n:original_max_position_embeddings=1", a: llama(), err: "leaves no logarithm"},
		{axis: rope.ScalingAxis, text: "log-n", a: warm, c: rope.Context{Original: 2048}, err: "already has a temperature"},
		{axis: rope.ScalingAxis, text: "temperature:attn_scale=1e-60", a: llama(), err: "do not fit into float32"},
		{axis: rope.ScalingAxis, text: "dynamic:factor=2", a: llama(), c: rope.Context{Original: 2048}, err: "give the context (--context), or length=run"},
		{axis: rope.ScalingAxis, text: "dynamic:factor=2,length=run", a: llama(), c: rope.Context{Original: 2048}},
		{axis: rope.ScalingAxis, text: "dynamic-linear", a: llama(), c: rope.Context{Length: 2048, Original: 2048}, warning: "no effect"},
		{axis: rope.ScalingAxis, text: "dynamic-linear", a: llama(), err: "give original_max_position_embeddings="},
		{axis: rope.ScalingAxis, text: "longrope:short_factor=[1],long_factor=[2]", a: llama(), c: rope.Context{Length: 4096, Original: 2048}, err: "short_factor has 1 numbers for the graph's 32 pairs"},
		{axis: rope.ScalingAxis, text: "longrope", a: llama(), c: rope.Context{Length: 4096, Original: 2048}, err: "give short_factor="},
		{axis: rope.ScalingAxis, text: "longrope:short_factor=[1]", a: llama(), c: rope.Context{Length: 4096, Original: 2048}, err: "short_factor has 1 numbers"},
		{axis: rope.ScalingAxis, text: "longrope:base=carried", a: scaled, c: rope.Context{Length: 4096, Original: 2048}, err: "not the powers of one base"},
		{axis: rope.ScalingAxis, text: "proportional:partial_rotary_factor=0.5", a: llama()},
		{axis: rope.ScalingAxis, text: "proportional", a: partial, err: "rotates 32 of a head's 64 channels"},
		{axis: rope.ScalingAxis, text: "frequencies:inv_freq=[1;2]", a: llama(), err: "inv_freq has 2 numbers for the graph's 32 pairs"},
		{axis: rope.ScalingAxis, text: "frequencies", a: still, err: "no rotation"},
		{axis: rope.MaskAxis, text: "first-keys:window=512,positions=cache", a: llama()},
		{axis: rope.MaskAxis, text: "first-keys:window=512,positions=cache", a: twoBands, err: "positions=cache: the attention already has a position map"},
		{axis: rope.MaskAxis, text: "first-keys:window=512,positions=cache", a: both, err: "positions=cache: the attention is bidirectional"},

		{axis: rope.MaskAxis, text: "keep", a: windowed},
		{axis: rope.MaskAxis, text: "causal", a: both},
		{axis: rope.MaskAxis, text: "causal", a: llama(), warning: "causal already"},
		{axis: rope.MaskAxis, text: "sliding-window:window=512", a: windowed},
		{axis: rope.MaskAxis, text: "sliding-window:window=512", a: both},
		{axis: rope.MaskAxis, text: "sliding-window", a: llama(), err: "give window="},
		{axis: rope.MaskAxis, text: "sliding-window:window=1001", a: windowed, warning: "own window of 1000 keys is narrower than window=1001 and stays"},
		{axis: rope.MaskAxis, text: "sliding-window:window=1000", a: windowed},
		{axis: rope.MaskAxis, text: "sliding-window:window=512", a: llama(), c: rope.Context{Length: 512}, warning: "no effect within the context"},
		{axis: rope.MaskAxis, text: "first-keys:window=512", a: llama()},
		{axis: rope.MaskAxis, text: "first-keys:window=512", a: both, warning: "bidirectional"},
		{axis: rope.MaskAxis, text: "first-keys:window=512", a: biased, warning: "own bias hides padding where there is any, and first keys are counted with it"},
		{axis: rope.MaskAxis, text: "first-keys:count=4", a: llama(), err: "give window="},
		{axis: rope.MaskAxis, text: "intra-document", a: llama()},
		{axis: rope.MaskAxis, text: "intra-document", a: both},
		{axis: rope.MaskAxis, text: "intra-document", a: twoBands},
		{axis: rope.MaskAxis, text: "intra-document-reset", a: llama()},
		{axis: rope.MaskAxis, text: "intra-document-reset", a: still},
		{axis: rope.MaskAxis, text: "intra-document-reset", a: twoBands, err: "cannot be combined with a position map"},
		{axis: rope.MaskAxis, text: "anchor", a: llama()},
		{axis: rope.MaskAxis, text: "anchor", a: both, warning: "bidirectional"},
		{axis: rope.MaskAxis, text: "anchor:start=3", a: llama(), err: "without restart=true"},
		{axis: rope.MaskAxis, text: "anchor:restart=true", a: twoBands, err: "cannot be combined with a position map"},
	} {
		_, warnings, err := apply(t, c.axis, c.text, c.a, c.c)
		title := c.axis.String() + " " + strings.Split(c.text, ":")[0] + ": "
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), title)):
			t.Errorf("%s: error %v lacks %q", c.text, err, c.err)
		case c.warning == "" && len(warnings) > 0:
			t.Errorf("%s: unexpected warnings %q", c.text, warnings)
		case c.warning != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], c.warning) || !strings.HasPrefix(warnings[0], title)):
			t.Errorf("%s: warnings %q lack %q", c.text, warnings, c.warning)
		}
	}
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

// temperature is λ on the whole score and leaves the rotation's gain alone.
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
