package rope_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

func TestParseSpec(t *testing.T) {
	for _, c := range []struct {
		axis rope.Axis
		text string
		want string // canonical
	}{
		{rope.ScalingAxis, "none", "none"},
		{rope.PositionsAxis, "identity", "identity"},
		{rope.ScalingAxis, "yarn", "yarn"},
		{rope.ScalingAxis, " yarn: truncate = false , factor=4.0,original_max_position_embeddings=8192", "yarn:factor=4,original_max_position_embeddings=8192,truncate=false"},
		{rope.ScalingAxis, "theta:rope_theta=5e5", "theta:rope_theta=500000"},
		{rope.ScalingAxis, "linear:factor=1.1", "linear:factor=1.1"},
		{rope.ScalingAxis, "yarn:mscale=1e-9", "yarn:mscale=1e-09"},
		{rope.ScalingAxis, "yarn:mscale=-0", "yarn:mscale=0"},
		{rope.PositionsAxis, "string:window=128,shift=2730", "string:shift=2730,window=128"},
		{rope.PositionsAxis, "string:shift=L/3", "string:shift=L/3"},
		{rope.PositionsAxis, "self-extend:group=8,window=L/4", "self-extend:window=L/4,group=8"},
		{rope.MaskAxis, "keep", "keep"},
		{rope.ScalingAxis, "YaRN:Factor=4,original-max-position-embeddings=8k,truncate=False", "yarn:factor=4,original_max_position_embeddings=8192,truncate=false"},
		{rope.ScalingAxis, "temperature:floor_scale=8K", "temperature:floor_scale=8192"},
		{rope.PositionsAxis, "Self_Extend:window=1k,group=8", "self-extend:window=1024,group=8"},
		{rope.PositionsAxis, "rerope:window=128K", "rerope:window=131072"},
		{rope.MaskAxis, "sliding_window:window=1M", "sliding-window:window=1048576"},
		{rope.MaskAxis, "first-keys:window=1k,positions=CACHE", "first-keys:window=1024,positions=cache"},
		{rope.MaskAxis, "first-keys:window=1024,count=4", "first-keys:count=4,window=1024"},
		{rope.MaskAxis, "anchor:start=2,restart=true", "anchor:restart=true,start=2"},
	} {
		s, err := rope.ParseSpec(c.axis, c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if s.String() != c.want {
			t.Errorf("%q: canonical %q, want %q", c.text, s, c.want)
		}
		again, err := rope.ParseSpec(c.axis, s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%q does not round-trip: %#v, %v", c.text, again, err)
		}
	}
}

func TestParseSpecErrors(t *testing.T) {
	for _, c := range []struct {
		axis       rope.Axis
		text, want string
	}{
		{rope.ScalingAxis, "", "is not a method"},
		{rope.ScalingAxis, ":factor=2", "is not a method"},
		{rope.ScalingAxis, "yran:factor=2", `unknown method "yran" (did you mean "yarn"?); methods: none, theta, linear, ntk, dynamic-linear, dynamic, partial-ntk, ntk-by-parts, yarn, longrope, llama3`},
		{rope.ScalingAxis, "string", "scaling: string is a method of --positions; write --positions string"},
		{rope.PositionsAxis, "yarn:factor=2", "positions: yarn is a method of --scaling; write --scaling yarn:factor=2"},
		{rope.MaskAxis, "anchors", `unknown method "anchors" (did you mean "anchor"?); methods: keep, causal, sliding-window, first-keys, intra-document, intra-document-reset, anchor`},
		{rope.MaskAxis, "sliding-window:window=0", "window=0 must be ≥ 1"},
		{rope.MaskAxis, "first-keys:count=0", "count=0 must be ≥ 1"},
		{rope.MaskAxis, "first-keys:positions=cach", `positions="cach" (did you mean "cache"?) must be text or cache`},
		{rope.ScalingAxis, "frequencies:inv_freq=1;2", "is not a list"},
		{rope.ScalingAxis, "longrope:long_factor=[1;0]", "long_factor=[1;0] must be > 0"},
		{rope.MaskAxis, "intra-document:start=1", "takes none"},
		{rope.MaskAxis, "intra-document-reset:start=-1", "start=-1 must be ≥ 0"},
		{rope.MaskAxis, "anchor:restart=1", "neither true nor false"},
		{rope.Axis(9), "x", "axis 9"},
		{rope.ScalingAxis, "yarn:", "not key=value"},
		{rope.ScalingAxis, "yarn:factor=4,", "not key=value"},
		{rope.ScalingAxis, "yarn:factor", "not key=value"},
		{rope.ScalingAxis, "yarn:=4", "not key=value"},
		{rope.ScalingAxis, "yarn:factr=4", `unknown key "factr" (did you mean "factor"?); keys: factor, original_max_position_embeddings, attention_factor`},
		{rope.PositionsAxis, "identity:shift=4", "takes none"},
		{rope.ScalingAxis, "yarn:factor=4,factor=4", "factor is given twice"},
		{rope.ScalingAxis, "yarn:factor=nan", `factor="nan" is not a number; it takes a number`},
		{rope.ScalingAxis, "yarn:factor=inf", "is not a number"},
		{rope.ScalingAxis, "yarn:factor=0x10", "is not a number"},
		{rope.ScalingAxis, "yarn:factor=1_000", "is not a number"},
		{rope.ScalingAxis, "yarn:factor=1e999", "beyond the range"},
		{rope.ScalingAxis, "yarn:factor=", "is not a number"},
		{rope.ScalingAxis, "yarn:factor=[1;2]", "is not a number"},
		{rope.ScalingAxis, "yarn:factor=0.5", "factor=0.5 must be ≥ 1"},
		{rope.ScalingAxis, "yarn:original_max_position_embeddings=8192.5", "must be an integer"},
		{rope.ScalingAxis, "yarn:original_max_position_embeddings=1e17", "must be an integer of at most 53 bits"},
		{rope.ScalingAxis, "yarn:truncate=1", "neither true nor false"},
		{rope.ScalingAxis, "yarn:attention_factor=0", "attention_factor=0 must be > 0"},
		{rope.ScalingAxis, "theta:rope_theta=1", "rope_theta=1 must be > 1"},
		{rope.PositionsAxis, "string:window=-1", "window=-1 must be ≥ 0"},
		{rope.PositionsAxis, "string:shift=1e3", "written in digits; it takes a number of tokens"},
		{rope.PositionsAxis, "string:shift=1000.0", "written in digits"},
		{rope.PositionsAxis, "string:shift=L/3.0", "written in digits"},
		{rope.MaskAxis, "sliding-window:window=1E3", "written in digits; it takes a number of tokens"},
		{rope.PositionsAxis, "string:shift=0", "shift=0 must be ≥ 1"},
		{rope.PositionsAxis, "string:shift=L/0", "must be the context divided by 1 or more"},
		{rope.PositionsAxis, "string:shift=L/1.5", "must be an integer"},
		{rope.PositionsAxis, "string:shift=L", "neither a number of tokens nor a share"},
		{rope.PositionsAxis, "self-extend:window=2,group=0", "group=0 must be ≥ 1"},
		{rope.ScalingAxis, "theta:rope_theta=10k", `rope_theta="10k" is not a number: k and M are only for numbers of tokens, so write all digits`},
		{rope.PositionsAxis, "self-extend:window=2k,group=1k", `group="1k" is not a number: k and M are only for numbers of tokens`},
		{rope.PositionsAxis, "rerope:window=8kb", `window="8kb" is neither a number of tokens nor a share of the context; it takes a number of tokens such as 8192 or 8k`},
		{rope.PositionsAxis, "rerope:window=1.5k", "neither a number of tokens"},
		{rope.PositionsAxis, "rerope:window=8589934593M", "neither a number of tokens"},
		{rope.PositionsAxis, "rerope:window=k", "neither a number of tokens"},
		{rope.PositionsAxis, "rerope:window=L/8k", "neither a number of tokens"},
		{rope.ScalingAxis, "yarn=4", "put a colon between a method and its keys; write yarn:factor=4"},
		{rope.ScalingAxis, "yarn factor=4", "write yarn:factor=4"},
		{rope.ScalingAxis, "yarn,factor=4,truncate=false", "write yarn:factor=4,truncate=false"},
		{rope.ScalingAxis, "4", `"4" is not a method; write name:key=value, for example linear:factor=4`},
		{rope.PositionsAxis, "8k", "for example string:shift=8k"},
		{rope.MaskAxis, "StreamingLLM", `unknown method "StreamingLLM" (did you mean "first-keys"?); methods`},
		{rope.MaskAxis, "streaming_llm", `unknown method "streaming_llm" (did you mean "first-keys"?); methods`},
		{rope.ScalingAxis, "factor=4", `"factor=4" is not a method; write name:key=value, for example linear:factor=4`},
		{rope.ScalingAxis, `{"rope_type": "yarn"}`, "this is a dictionary, which --rope-parameters takes"},
		{rope.ScalingAxis, "--positions", "not the flag --positions"},
		{rope.ScalingAxis, "yarn:4", `"4" is not key=value; write for example factor=4`},
		{rope.ScalingAxis, "yarn:factor:4", "write factor=4"},
		{rope.ScalingAxis, "yarn:original_max_position_embeddings=8,192", `"192" is not key=value; numbers are written without commas, for example 8192 or 8k`},
		{rope.PositionsAxis, "identity:4", "the method takes no keys, write identity alone"},
		{rope.PositionsAxis, "leaky-rerope:window=2,factor=1", "factor=1 must be > 1"},
	} {
		s, err := rope.ParseSpec(c.axis, c.text)
		if err == nil {
			t.Errorf("%q: parsed as %v", c.text, s)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %q lacks %q", c.text, err, c.want)
		}
	}
}

// A Spec made in Go is checked like one that was parsed.
func TestApplyChecksSpec(t *testing.T) {
	for _, c := range []struct {
		params map[string]rope.Value
		want   string
	}{
		{map[string]rope.Value{"factor": rope.Number(math.NaN())}, "factor=NaN must be finite"},
		{map[string]rope.Value{"factor": rope.Integer(4)}, "factor=4 is an integer; it takes a number"},
		{map[string]rope.Value{"factor": {}}, "is nothing"},
		{map[string]rope.Value{"gain": rope.Number(4)}, `unknown key "gain"`},
		{map[string]rope.Value{"factor": rope.List(1, 2)}, "factor=[1;2] is a list"},
	} {
		_, _, err := rope.Spec{Name: "yarn", Params: c.params}.Apply(llama(), rope.Context{Original: 8192})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v lacks %q", c.params, err, c.want)
		}
	}
	for _, c := range []rope.Context{{Length: -1}, {Original: -1}, {Theta: math.NaN()}, {Theta: -1}} {
		if _, _, err := (rope.Spec{Name: "none"}).Apply(llama(), c); err == nil {
			t.Errorf("context %+v was accepted", c)
		}
	}
}

// drawSpec makes a spec of any method with any of its keys, values within the rules.
func drawSpec(t *rapid.T) rope.Spec {
	var methods []rope.Method
	for m := range rope.Methods() {
		methods = append(methods, m)
	}
	m := rapid.SampledFrom(methods).Draw(t, "method")
	s := rope.Spec{Axis: m.Axis, Name: m.Name}
	for _, p := range m.Params {
		if !rapid.Bool().Draw(t, p.Name+" given") {
			continue
		}
		if s.Params == nil {
			s.Params = map[string]rope.Value{}
		}
		switch {
		case p.Kind == rope.Switch:
			s.Params[p.Name] = rope.Bool(rapid.Bool().Draw(t, p.Name))
		case p.Kind == rope.Tokens && rapid.Bool().Draw(t, p.Name+" share"):
			s.Params[p.Name] = rope.Share(rapid.Int64Range(1, 1<<20).Draw(t, p.Name))
		case p.Kind == rope.Tokens:
			v, err := rope.ParseSpec(rope.PositionsAxis, fmt.Sprintf("rerope:window=%d", rapid.Int64Range(1, 1<<53).Draw(t, p.Name)))
			if err != nil {
				t.Fatal(err)
			}
			s.Params[p.Name] = v.Params["window"]
		case p.Kind == rope.Word:
			s.Params[p.Name] = rope.Text(rapid.SampledFrom(p.Words).Draw(t, p.Name))
		case p.Kind == rope.Reals:
			s.Params[p.Name] = rope.List(rapid.SliceOfN(rapid.Float64Range(1e-300, math.MaxFloat64), 1, 40).Draw(t, p.Name)...)
		case p.Rule.Text == "between 0 and 2^32 − 1":
			s.Params[p.Name] = rope.Integer(rapid.Int64Range(0, 1<<32-1).Draw(t, p.Name))
		case p.Kind == rope.Whole:
			s.Params[p.Name] = rope.Integer(rapid.Int64Range(1, 1<<53).Draw(t, p.Name))
		case p.Rule.Text == "> 0 and ≤ 1":
			s.Params[p.Name] = rope.Number(rapid.Float64Range(1e-300, 1).Draw(t, p.Name))
		default:
			s.Params[p.Name] = rope.Number(rapid.Float64Range(1.0001, math.MaxFloat64).Draw(t, p.Name))
		}
	}
	return s
}

func TestSpecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		again, err := rope.ParseSpec(s.Axis, s.String())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(again, s) {
			t.Fatalf("%v came back as %v", s, again)
		}
	})
}

// checkApplied applies a valid spec: whatever comes out is finite.
func checkApplied(t testing.TB, s rope.Spec) {
	a, _, err := s.Apply(llama(), rope.Context{Length: 32768, Original: 8192})
	if err != nil {
		return
	}
	values := append([]float64{a.Encoding.EffectiveGain(), a.EffectiveScale()}, a.Encoding.Frequencies...)
	for _, b := range a.Bands {
		values = append(values, b.QueryScale, b.QueryOffset, b.QueryLimit, b.KeyScale)
	}
	for _, x := range values {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Fatalf("%v gives %v", s, values)
		}
	}
}
