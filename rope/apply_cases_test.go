package rope_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// applyCase is a method applied to an attention, and what is said of it.
type applyCase struct {
	text    string
	a       rope.Attention
	c       rope.Context
	warning string // part of the only warning
	err     string
}

// check applies every case's method. What is said begins with the method's name.
func check(t *testing.T, axis rope.Axis, cases []applyCase) {
	t.Helper()
	for _, c := range cases {
		_, warnings, err := apply(t, axis, c.text, c.a, c.c)
		title := axis.String() + " " + strings.Split(c.text, ":")[0] + ": "
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

// changed is llama's attention with something changed.
func changed(change func(*rope.Attention)) rope.Attention {
	a := llama()
	change(&a)
	return a
}

func TestWarningsAndErrorsOfScalings(t *testing.T) {
	scaled := llama()
	for i := range scaled.Encoding.Frequencies {
		scaled.Encoding.Frequencies[i] /= 4
	}
	gained := changed(func(a *rope.Attention) { a.Encoding.Gain = 1.2 })
	fast := changed(func(a *rope.Attention) { a.Encoding.Frequencies[0] = 2 * math.Pi * 0.9 })
	nonRotary := changed(func(a *rope.Attention) { a.Encoding.Frequencies = nil })
	warm := changed(func(a *rope.Attention) { a.Temperature = rope.Temperature{Slope: 1} })
	partial := changed(func(a *rope.Attention) { a.Encoding.Frequencies = a.Encoding.Frequencies[:16] })
	const yarn = "yarn:factor=4,original_max_position_embeddings=2048"
	check(t, rope.ScalingAxis, []applyCase{
		{text: "none", a: nonRotary},
		{text: "none:partial_rotary_factor=0.5", a: llama(), err: "rotates 32 of 64 channels, but the graph rotates 64"},
		{text: yarn, a: llama()},
		{text: yarn + ",partial_rotary_factor=1", a: llama()},
		{text: yarn, a: llama(), c: rope.Context{Length: 9000}, warning: "factor=4 reaches 8192 tokens"},
		{text: yarn, a: llama(), c: rope.Context{Length: 8192}},
		{text: yarn, a: llama(), c: rope.Context{Length: 4095}, warning: "reaches 8192 tokens from a trained context of 2048, more than twice the context of 4095"},
		{text: yarn, a: llama(), c: rope.Context{Length: 4096}},
		{text: yarn, a: llama(), c: rope.Context{Length: 2048}, warning: "does not exceed the trained context of 2048"},
		{text: "linear:factor=1", a: llama(), c: rope.Context{Length: 1024, Original: 2048}},
		{text: "linear:factor=8192", a: llama(), c: rope.Context{Original: 2048}},
		{text: "linear:factor=8193", a: llama(), c: rope.Context{Original: 2048}, warning: "factor=8193 reaches beyond the 16777216 positions"},
		{text: "linear:factor=1e9", a: llama(), c: rope.Context{Length: 4096}, warning: "reaches beyond the 16777216 positions"},
		{text: "ntk:alpha=1e9", a: llama(), warning: "alpha=1000000000 reaches beyond the 16777216 positions"},
		{text: "ntk:alpha=4", a: llama(), c: rope.Context{Length: 4096, Original: 2048}},
		{text: "yarn", a: llama(), c: rope.Context{Length: 8192, Original: 2048}},
		{text: "yarn:factor=4", a: llama(), err: "give original_max_position_embeddings="},
		{text: "yarn", a: llama(), c: rope.Context{Original: 2048}, err: "give factor=, or both the context"},
		{text: "yarn", a: llama(), c: rope.Context{Length: 1024, Original: 2048}, err: "shorter than the trained context"},
		{text: yarn + ",base=carried", a: scaled, err: "not the powers of one base: pair 0 has 0.25"},
		{text: yarn + ",base=carried", a: scaled, c: rope.Context{Theta: 10000}, err: "give rope_theta=10000 (the configuration's)"},
		{text: yarn + ",rope_theta=10000", a: scaled, warning: "replaces the graph's frequencies"},
		{text: yarn + ",rope_theta=10000", a: llama()},
		{text: yarn + ",rope_theta=100000", a: llama(), warning: "rope_theta=100000 replaces the graph's base 10000"},
		{text: yarn, a: fast, err: "more than π"},
		{text: yarn, a: nonRotary, err: "no rotation"},
		{text: yarn, a: gained, warning: "already has the gain 1.2"},
		{text: yarn + ",temperature=1.3", a: gained},
		{text: yarn + ",temperature=1.3,attention_factor=1", a: llama(), err: "temperature and attention_factor"},
		{text: yarn + ",temperature=1.3,mscale=1", a: llama(), err: "temperature and mscale"},
		{text: yarn + ",mscale=1", a: llama(), warning: "only work together"},
		{text: yarn + ",mscale=1,mscale_all_dim=0.5,attention_factor=1", a: llama(), warning: "not used, because attention_factor"},
		{text: yarn + ",beta_fast=1,beta_slow=2", a: llama(), err: "beta_fast=1 must not be below beta_slow=2"},
		{text: "yarn:factor=4,original_max_position_embeddings=4", a: llama(), warning: "falls outside"},
		{text: "linear:factor=4,base=carried", a: scaled},
		{text: "beta-ary:factor=4,b=300", a: llama(), err: "would turn by NaN per position; give less extreme numbers"},
		{text: "linear", a: llama(), c: rope.Context{Length: 4096, Original: 2048}},
		{text: "linear", a: llama(), err: "give factor="},
		{text: "linear:factor=2", a: fast, err: "more than π"},
		{text: "linear:factor=2,rope_theta=10000", a: fast, warning: "replaces the graph's frequencies"},
		{text: "theta:rope_theta=500000", a: fast},
		{text: "theta", a: llama(), err: "give the new base, rope_theta="},
		{text: "theta:rope_theta=500000", a: nonRotary, err: "no rotation"},
		{text: yarn + ",ramp=ratio", a: llama()},
		{text: yarn + ",tau=8", a: llama(), err: "tau= needs ramp=ratio"},
		{text: yarn + ",ramp=ratio,beta_fast=8", a: llama(), err: "beta_fast= cannot be combined with ramp=ratio"},
		{text: "log-n", a: llama(), err: "give original_max_position_embeddings="},
		{text: "log-n:original_max_position_embeddings=1", a: llama(), err: "must be 2 or more"},
		{text: "log-n", a: warm, c: rope.Context{Original: 2048}, err: "already has a temperature"},
		{text: "temperature:attn_scale=1e-60", a: llama(), err: "do not fit into float32"},
		{text: "dynamic:factor=2", a: llama(), c: rope.Context{Original: 2048}, err: "give the context (--context), or length=run"},
		{text: "dynamic:factor=2,length=run", a: llama(), c: rope.Context{Original: 2048}},
		{text: "dynamic-linear", a: llama(), c: rope.Context{Length: 2048, Original: 2048}, warning: "no effect"},
		{text: "dynamic-linear", a: llama(), err: "give original_max_position_embeddings="},
		{text: "longrope:short_factor=[1],long_factor=[2]", a: llama(), c: rope.Context{Length: 4096, Original: 2048}, err: "short_factor has 1 numbers for the graph's 32 pairs"},
		{text: "longrope", a: llama(), c: rope.Context{Length: 4096, Original: 2048}, err: "give short_factor="},
		{text: "longrope:short_factor=[1]", a: llama(), c: rope.Context{Length: 4096, Original: 2048}, err: "short_factor has 1 numbers"},
		{text: "longrope:base=carried", a: scaled, c: rope.Context{Length: 4096, Original: 2048}, err: "not the powers of one base"},
		{text: "proportional:partial_rotary_factor=0.5", a: llama()},
		{text: "proportional", a: partial, err: "rotates 32 of a head's 64 channels"},
		{text: "frequencies:inv_freq=[1;2]", a: llama(), err: "inv_freq has 2 numbers for the graph's 32 pairs"},
		{text: "frequencies", a: nonRotary, err: "no rotation"},
	})
}

func TestWarningsAndErrorsOfPositionMaps(t *testing.T) {
	nonRotary := changed(func(a *rope.Attention) { a.Encoding.Frequencies = nil })
	both := changed(func(a *rope.Attention) { a.Mask.Causal = false })
	banded := changed(func(a *rope.Attention) { a.Bands = []rope.Band{{QueryScale: 1, KeyScale: 1}} })
	windowed := changed(func(a *rope.Attention) { a.Mask.Window = 1000 })
	wide := changed(func(a *rope.Attention) { a.Mask.Window = 10000 })
	sinks := changed(func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 1000, 4 })
	twoBands := changed(func(a *rope.Attention) {
		a.Bands = []rope.Band{{QueryScale: 1, KeyScale: 1}, {Start: 100, QueryScale: 1, QueryOffset: -60, KeyScale: 1}}
	})
	restarted := changed(func(a *rope.Attention) { a.Mask.Documents, a.Mask.Restart = rope.IntraDocument, true })
	raw := changed(func(a *rope.Attention) { a.Cache = rope.Raw })
	drawn := changed(func(a *rope.Attention) { a.Drawn.Range = 1000 })
	check(t, rope.PositionsAxis, []applyCase{
		{text: "identity", a: both},
		{text: "string", a: llama(), c: rope.Context{Length: 8192, Reachable: 8192}},
		{text: "string", a: llama(), c: rope.Context{Length: 8192}, warning: "is trained or scaled for is unknown, so shift=2730 is a third of the context"},
		{text: "string", a: llama(), c: rope.Context{Length: 16256, Reachable: 8192}}, // of which shift is more than half
		{text: "string", a: llama(), c: rope.Context{Length: 16257, Reachable: 8192}, err: "trained or scaled for 8192 tokens, so with window=128 STRING reaches 16256 (twice as many, less the window), fewer than the 16257 of the context; give a smaller context, or add a scaling"},
		{text: "string:shift=5000", a: llama(), c: rope.Context{Length: 16384, Reachable: 8192}}, // a given one is not refused
		{text: "string", a: llama(), c: rope.Context{Length: 900, Reachable: 64}, err: "window=128 must be below the 64 tokens that the model is trained or scaled for"},
		{text: "string", a: windowed, c: rope.Context{Length: 65536, Reachable: 8192}, warning: "no effect: the attention's sliding window of 1000"},
		{text: "string", a: wide, c: rope.Context{Length: 65536, Reachable: 8192}},
		{text: "string", a: wide, c: rope.Context{Length: 65536, Reachable: 5000}, err: "reaches 9872 (twice as many, less the window), fewer than the 10000 of the context"},
		{text: "string", a: sinks, c: rope.Context{Length: 65536, Reachable: 8192}, err: "fewer than the 65536 of the context"},
		{text: "string:shift=2730", a: llama()},
		{text: "string", a: llama(), err: "neither shift= nor the context is given"},
		{text: "string", a: llama(), c: rope.Context{Length: 2}, err: "too short for the default shift"},
		{text: "string", a: llama(), c: rope.Context{Length: 100}, err: "window=128 must not exceed shift=33"},
		{text: "string:shift=100,window=101", a: llama(), err: "window=101 must not exceed shift=100"},
		{text: "string:shift=100,window=100", a: llama(), warning: "changes no distance"},
		{text: "string:shift=1000", a: llama(), c: rope.Context{Length: 7007}, warning: "outside the recommended range"},
		{text: "string:shift=1000", a: llama(), c: rope.Context{Length: 7006}},
		{text: "string:shift=L/7", a: llama(), c: rope.Context{Length: 7006}}, // the paper's bound
		{text: "string:shift=L/8", a: llama(), c: rope.Context{Length: 7006}, warning: "shift=875 is outside the recommended range"},
		{text: "string:shift=1000", a: llama(), c: rope.Context{Length: 2000}},
		{text: "string:shift=1000", a: llama(), c: rope.Context{Length: 1999}, warning: "outside the recommended range"},
		{text: "string:shift=1000", a: llama(), c: rope.Context{Length: 1000}, warning: "no effect within the context"},
		{text: "string:shift=1000,window=31", a: llama(), warning: "below 32"},
		{text: "string:shift=1000,window=32", a: llama()},
		{text: "string:shift=1000", a: windowed, warning: "no effect: the attention's sliding window of 1000"},
		{text: "string:shift=999", a: windowed},
		{text: "string:shift=1000", a: sinks},
		{text: "string:shift=1000", a: both, err: "bidirectional"},
		{text: "string:shift=1000", a: banded, err: "already has a position map"},
		{text: "string:shift=1000", a: nonRotary, err: "no rotation"},
		{text: "string:shift=1000", a: restarted, err: "positions restart in each document (--mask)"},
		{text: "rerope", a: llama(), err: "give window="},
		{text: "rerope", a: llama(), c: rope.Context{Original: 2048}},
		{text: "rerope:window=L/4", a: llama(), c: rope.Context{Length: 4096}},
		{text: "rerope:window=L/4", a: llama(), err: "window=L/4 is a share of the context; give the context"},
		{text: "rerope:window=L/8", a: llama(), c: rope.Context{Length: 4}, err: "window=0 must be ≥ 1"},
		{text: "rerope:window=64", a: both, err: "bidirectional"},
		{text: "rerope:window=64", a: restarted, err: "positions restart"},
		{text: "rerope:window=1000", a: windowed, warning: "no effect: the attention's sliding window of 1000"},
		{text: "leaky-rerope:window=64", a: llama(), err: "give factor="},
		{text: "leaky-rerope:window=64,factor=4", a: llama(), c: rope.Context{Length: 4096, Original: 128}, warning: "these settings reach 320 tokens, fewer than the context of 4096"},
		{text: "leaky-rerope:window=64,factor=4", a: banded, err: "already has a position map"},
		{text: "self-extend:window=64", a: llama(), err: "group= is missing"},
		{text: "self-extend:group=4", a: llama(), err: "give window="},
		{text: "self-extend:window=3,group=4", a: llama(), err: "window must not be below group"},
		{text: "self-extend:window=64,group=1", a: llama(), warning: "changes nothing"},
		{text: "self-extend:window=64,group=4", a: llama(), c: rope.Context{Length: 4096, Original: 128}, warning: "these settings reach 320"},
		{text: "dual-chunk:chunk_size=64", a: llama(), err: "local_size= is missing"},
		{text: "dual-chunk:chunk_size=64,local_size=64", a: llama(), err: "local_size=64 must be below chunk_size=64"},
		{text: "dual-chunk:chunk_size=64,local_size=8", a: llama(), c: rope.Context{Original: 32}, warning: "exceeds the trained context of 32"},
		{text: "dual-chunk:chunk_size=64,local_size=8,original_max_position_embeddings=64", a: llama(), err: "the temperature needs the context"},
		{text: "dual-chunk:chunk_size=64,local_size=8", a: nonRotary, err: "no rotation"},
		{text: "randomized:range=L/1", a: llama(), c: rope.Context{Length: 4096}},
		{text: "randomized", a: llama(), err: "give range="},
		{text: "randomized:range=1000", a: llama(), c: rope.Context{Length: 1001}, err: "range=1000 is less than the context of 1001"},
		{text: "randomized:range=5000000", a: llama(), err: "range=5000000 is above 4194304"},
		{text: "randomized:range=1000", a: nonRotary, err: "no rotation"},
		{text: "randomized:range=1000", a: twoBands, err: "already has a position map"},
		{text: "randomized:range=1000", a: raw, err: "--cache raw"},
		{text: "string:shift=1000", a: drawn, err: "drawn at random"},
	})
}

func TestWarningsAndErrorsOfMasks(t *testing.T) {
	nonRotary := changed(func(a *rope.Attention) { a.Encoding.Frequencies = nil })
	both := changed(func(a *rope.Attention) { a.Mask.Causal = false })
	windowed := changed(func(a *rope.Attention) { a.Mask.Window = 1000 })
	twoBands := changed(func(a *rope.Attention) {
		a.Bands = []rope.Band{{QueryScale: 1, KeyScale: 1}, {Start: 100, QueryScale: 1, QueryOffset: -60, KeyScale: 1}}
	})
	raw := changed(func(a *rope.Attention) { a.Cache = rope.Raw })
	drawn := changed(func(a *rope.Attention) { a.Drawn.Range = 1000 })
	biased := changed(func(a *rope.Attention) { a.Mask.Bias, a.Mask.Padding = true, false })
	padded := changed(func(a *rope.Attention) { a.Mask.Bias, a.Mask.Padding = true, true }) // beside a bias that has it too
	check(t, rope.MaskAxis, []applyCase{
		{text: "intra-document-reset", a: drawn, err: "drawn at random"},
		{text: "intra-document-reset", a: raw, err: "cached un-rotated"},
		{text: "anchor:restart=true", a: raw, err: "cached un-rotated"},
		{text: "first-keys:window=512,positions=cache", a: drawn, err: "drawn at random"},
		{text: "first-keys:window=512,positions=cache", a: llama()},
		{text: "first-keys:window=512,positions=cache", a: twoBands, err: "positions=cache: the attention already has a position map"},
		{text: "first-keys:window=512,positions=cache", a: both, err: "positions=cache: the attention is bidirectional"},
		{text: "keep", a: windowed},
		{text: "causal", a: both},
		{text: "causal", a: llama(), warning: "causal already"},
		{text: "sliding-window:window=512", a: windowed},
		{text: "sliding-window:window=512", a: both},
		{text: "sliding-window", a: llama(), err: "give window="},
		{text: "sliding-window:window=1001", a: windowed, warning: "own window of 1000 keys is narrower than window=1001 and stays"},
		{text: "sliding-window:window=1000", a: windowed},
		{text: "sliding-window:window=512", a: llama(), c: rope.Context{Length: 512}, warning: "no effect within the context"},
		{text: "first-keys:window=512", a: llama()},
		{text: "first-keys:window=512", a: both, warning: "bidirectional"},
		{text: "first-keys:window=512", a: biased, warning: "hides padding by its own bias, so padding is counted among the first keys"},
		{text: "first-keys:window=512", a: padded},
		{text: "first-keys:count=4", a: llama(), err: "give window="},
		{text: "intra-document", a: llama()},
		{text: "intra-document", a: both},
		{text: "intra-document", a: twoBands},
		{text: "intra-document-reset", a: llama()},
		{text: "intra-document-reset", a: nonRotary},
		{text: "intra-document-reset", a: twoBands, err: "cannot be combined with a position map"},
		{text: "anchor", a: llama()},
		{text: "anchor", a: both, warning: "bidirectional"},
		{text: "anchor:start=3", a: llama(), err: "start= needs restart=true"},
		{text: "anchor:restart=true", a: twoBands, err: "cannot be combined with a position map"},
	})
}
