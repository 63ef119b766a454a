package rope_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// FuzzParseSpec: the number of an axis, and a spec for it. A spec is written as it is read again; where it
// applies, all that comes out is finite.
func FuzzParseSpec(f *testing.F) {
	var seeds []string
	for _, spec := range []string{
		"none", "yarn:factor=4,original_max_position_embeddings=8192,truncate=false", "theta:rope_theta=1e6",
		"string:shift=2730,window=128", "string:shift=L/3", "dual-chunk:chunk_size=64,local_size=8", "linear:factor=1.5,rope_theta=500000", "first-keys:count=4,window=1024", "anchor:restart=true,start=1", "yarn:factor=[1;2]", "yarn:,", ":", "yarn:factor=-0", "yarn:f\nctor=-,llama3=2,0", "\n10\n24",
		"longrope:short_factor=[1;1.5],long_factor=[2;3]", "sliding-window:window=4k", "llama3:factor=8,low_freq_factor=1,high_freq_factor=4",
	} {
		for axis := range 3 {
			seeds = append(seeds, string(rune(axis))+spec)
		}
	}
	for m := range rope.Methods() {
		text := string(rune(m.Axis)) + m.Name + ":"
		for _, p := range m.Params {
			text += p.Name + "=2,"
		}
		seeds = append(seeds, strings.TrimRight(text, ",:"))
	}
	testfuzz.Run(f, seeds, 4000, func(t testing.TB, input []byte) bool {
		if len(input) == 0 {
			return false
		}
		axis, text := rope.Axis(input[0]), string(input[1:])
		s, err := rope.ParseSpec(axis, text)
		if err != nil {
			oneLine(t, err)
			return false
		}
		again, err := rope.ParseSpec(s.Axis, s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q: canonical %q comes back as %v, %v", text, s, again, err)
		}
		checkApplied(t, s)
		return true
	})
}

// FuzzParseRopeParameters: what is read of a dictionary, or of a config.json, is a spec for each type of
// layers, each written as it is read again.
func FuzzParseRopeParameters(f *testing.F) {
	seeds := []string{`{"type":"yarn","factor":null,"x":[1,{"a":2}]}`,
		`{"text_config":{"rope_scaling":{"type":"longrope"},"max_position_embeddings":0,"original_max_position_embeddings":1}}`,
		`{"text_config":{"text_config":{"rope_theta":7}}}`, `{"rope_parameters":{"full_attention":{"rope_type":"yarn","factor":4},"sliding_attention":{"rope_type":"default"}}}`}
	for _, c := range hfCases(f)[:60] {
		seeds = append(seeds, string(c.RopeParameters))
	}
	testfuzz.Run(f, seeds, 2000, func(t testing.TB, data []byte) bool {
		byType, err := rope.ParseLayerRopeParameters(data)
		if err != nil {
			oneLine(t, err)
			return false
		}
		for name, s := range byType {
			again, err := rope.ParseSpec(rope.ScalingAxis, s.String())
			if err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("%s: %s: canonical %q comes back as %v, %v", data, name, s, again, err)
			}
			checkApplied(t, s)
		}
		return true
	})
}

func oneLine(t testing.TB, err error) {
	t.Helper()
	if text := err.Error(); text == "" || strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %q", text)
	}
}
