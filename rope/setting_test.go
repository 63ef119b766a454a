package rope

import (
	"fmt"
	"strings"
	"testing"
)

// TestResolve has, for methods that take values from several places, each value and
// where it came from.
func TestResolve(t *testing.T) {
	plain := Attention{Heads: 4, KVHeads: 2, HeadSize: 16, Mask: Mask{Causal: true}, Encoding: Encoding{Frequencies: geometric(10000, 8)}}
	known := Context{Length: 8192, Original: 2048, Reachable: 6000}
	for _, c := range []struct {
		axis Axis
		spec string
		want string
	}{
		{ScalingAxis, "yarn", "factor=4 context, original_max_position_embeddings=2048 configuration, attention_factor=1.138629436111989 computed, beta_fast=32 default, beta_slow=1 default, truncate=true default, ramp=hf default, rope_theta=10000 measured"},
		{ScalingAxis, "yarn:factor=2,temperature=1.1", "factor=2 given, original_max_position_embeddings=2048 configuration, beta_fast=32 default, beta_slow=1 default, truncate=true default, ramp=hf default, temperature=1.1 given, rope_theta=10000 measured"},
		{ScalingAxis, "yarn:factor=2,mscale=1,mscale_all_dim=1,rope_theta=500", "factor=2 given, original_max_position_embeddings=2048 configuration, attention_factor=1 computed, beta_fast=32 default, beta_slow=1 default, mscale=1 given, mscale_all_dim=1 given, truncate=true default, ramp=hf default, rope_theta=500 given"},
		{ScalingAxis, "linear", "factor=4 context"},
		{ScalingAxis, "linear:factor=2,base=carried", "factor=2 given, base=carried given"},
		{PositionsAxis, "string", "shift=2730 context, window=128 default, attention_factor=1 default"},
		{PositionsAxis, "string:shift=L/2,window=64", "shift=4096 given, window=64 given, attention_factor=1 default"},
		{PositionsAxis, "rerope", "window=1024 configuration"},
		{MaskAxis, "sliding-window:window=512", "window=512 given"},
	} {
		spec, err := ParseSpec(c.axis, c.spec)
		if err != nil {
			t.Fatal(err)
		}
		_, settings, _, err := spec.Resolve(plain, known)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, s := range settings {
			texts = append(texts, fmt.Sprintf("%s=%v %s", s.Name, s.Value, s.From))
		}
		if got := strings.Join(texts, ", "); got != c.want {
			t.Errorf("%v %s:\n got %s\nwant %s", c.axis, c.spec, got, c.want)
		}
	}
}

// TestResolvedAgain gives every method its resolved parameters once more: the result is
// the same without any context.
func TestResolvedAgain(t *testing.T) {
	plain := Attention{Heads: 4, KVHeads: 2, HeadSize: 16, Mask: Mask{Causal: true}, Encoding: Encoding{Frequencies: geometric(10000, 8)}}
	known := Context{Length: 8192, Original: 2048}
	for _, text := range []string{"scaling yarn", "scaling linear", "scaling ntk-by-parts", "positions string", "positions rerope", "positions leaky-rerope:factor=4", "scaling llama3:factor=8,low_freq_factor=1,high_freq_factor=4", "scaling log-n"} {
		axis := ScalingAxis
		name, text, _ := strings.Cut(text, " ")
		if name == "positions" {
			axis = PositionsAxis
		}
		spec, err := ParseSpec(axis, text)
		if err != nil {
			t.Fatal(err)
		}
		want, settings, _, err := spec.Resolve(plain, known)
		if err != nil {
			t.Fatal(err)
		}
		again := Spec{Axis: spec.Axis, Name: spec.Name, Params: map[string]Value{}}
		for _, s := range settings {
			again.Params[s.Name] = s.Value
		}
		got, _, err := again.Apply(plain, Context{})
		if err != nil {
			t.Errorf("%v: %v", again, err)
			continue
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v gives %v, %v gave %v", again, got, spec, want)
		}
	}
}
