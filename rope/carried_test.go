package rope_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// carriers are scalings that are recognised.
var carriers = []string{
	"linear:factor=4", "linear:factor=2.5",
	"yarn:factor=2,original_max_position_embeddings=2048", "yarn:factor=32,original_max_position_embeddings=4096",
	"yarn:factor=4,original_max_position_embeddings=2048,attention_factor=1.5",
	"ntk-by-parts:factor=8,original_max_position_embeddings=2048",
	"llama3:factor=8,original_max_position_embeddings=8192,low_freq_factor=1,high_freq_factor=4",
}

// asked are scalings that are asked for on top.
var asked = []string{
	"yarn:factor=4,original_max_position_embeddings=2048", "linear:factor=3", "theta:rope_theta=500000", "ntk:alpha=2", "nope", "dynamic-linear",
	"dynamic:factor=2,length=run", "longrope:factor=4,short_factor=[" + strings.Repeat("1;", 31) + "1],long_factor=[" + strings.Repeat("3;", 31) + "4]",
	"llama3:factor=4,original_max_position_embeddings=2048,low_freq_factor=1,high_freq_factor=4", "yarn:factor=4,rope_theta=500000", "resonance", "temperature", "log-n",
}

// folded is what is measured without a cache where all of a head is rotated: the
// gain of query and key stands in the scale.
func folded(a rope.Attention) rope.Attention {
	a.Scale, a.Encoding.Gain = a.EffectiveScale()*a.Encoding.EffectiveGain()*a.Encoding.EffectiveGain(), 1
	return a
}

// TestBaseOriginal: with base=original a method gives on a scaled graph what it
// gives on one without scaling, and with base=carried what it
// makes of the frequencies that there are.
func TestBaseOriginal(t *testing.T) {
	context := rope.Context{Length: 32768, Original: 2048}
	rapid.Check(t, func(t *rapid.T) {
		carrier := rapid.SampledFrom(carriers).Draw(t, "carrier")
		text := rapid.SampledFrom(asked).Draw(t, "asked")
		plain := otherSense(llama(), drawSenses(t, 32))
		carrying, _, err := must(t, carrier).Apply(plain, context)
		if err != nil {
			t.Fatal(err)
		}
		in := carrying
		fold := rapid.Bool().Draw(t, "folded") && !strings.Contains(carrier, "attention_factor")
		if fold {
			in = folded(in)
		}
		want, _, err := must(t, text).Apply(plain, context)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := must(t, with(text, "base=original")).Apply(in, context)
		if err != nil {
			t.Fatal(err)
		}
		if g, w := got.Encoding.EffectiveGain(), want.Encoding.EffectiveGain(); math.Abs(g-w) > 1e-12 || math.Abs(got.EffectiveScale()-want.EffectiveScale()) > 1e-12 {
			t.Errorf("gain %g and scale %g, want %g and %g", g, got.EffectiveScale(), w, want.EffectiveScale())
		}
		for i, w := range want.Encoding.Frequencies {
			if g := got.Encoding.Frequencies[i]; math.Abs(g-w) > 2e-6*math.Abs(w) {
				t.Errorf("pair %d turns by %g, want %g", i, g, w)
			}
		}
		if !reflect.DeepEqual(got.Encoding.LengthDependent.Trained, want.Encoding.LengthDependent.Trained) || got.Temperature != want.Temperature {
			t.Errorf("%+v, want %+v", got, want)
		}

		// Without base= the two are spelled out, unless they are the same or the frequencies stay.
		_, _, err = must(t, text).Apply(in, context)
		if text == "temperature" || text == "log-n" || strings.Contains(text, "rope_theta") && !strings.HasPrefix(carrier, "yarn") || text == "nope" && !strings.HasPrefix(carrier, "yarn") {
			if err != nil {
				t.Errorf("%s is refused: %v", text, err)
			}
			return
		}
		for _, spelled := range []string{"already scaled by " + strings.Split(carrier, ",attention")[0], "--scaling " + must(t, with(text, "base=original")).String(), "--scaling " + must(t, with(text, "base=carried")).String()} {
			if err == nil || !strings.Contains(err.Error(), spelled) {
				t.Errorf("the error %v does not say %q", err, spelled)
			}
		}
		if linear, _, err := must(t, "linear:factor=2,base=carried").Apply(in, context); err != nil {
			t.Error(err)
		} else if w := carrying.Encoding.Frequencies[31] / 2; linear.Encoding.Frequencies[31] != w {
			t.Errorf("base=carried turns the last pair by %g, want %g", linear.Encoding.Frequencies[31], w)
		}
	})
}

func must(t *rapid.T, text string) rope.Spec {
	t.Helper()
	s, err := rope.ParseSpec(rope.ScalingAxis, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// with adds a key to the text of a spec.
func with(text, key string) string {
	if strings.Contains(text, ":") {
		return text + "," + key
	}
	return text + ":" + key
}

// TestBaseUnknown: what the frequencies, the gain or the scale were before is
// not guessed, and base= changes nothing where nothing is scaled.
func TestBaseUnknown(t *testing.T) {
	scaled := func(spec string) rope.Attention {
		a, _, err := apply(t, rope.ScalingAxis, spec, llama(), rope.Context{})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	odd := llama()
	odd.Encoding.Frequencies[7] *= 1.01
	gained := llama()
	gained.Encoding.Gain = 1.2
	byParts := scaled("ntk-by-parts:factor=4,original_max_position_embeddings=2048")
	byParts.Scale = 0.2
	linear := scaled("linear:factor=4")
	linear.Encoding.Gain = 1.2
	yarn := scaled("yarn:factor=4,original_max_position_embeddings=2048")
	yarn.Scale = 0.2
	longer := llama()
	longer.Encoding.LengthDependent = rope.LengthDependent{Trained: 64, Long: longer.Encoding.Frequencies}
	raised := llama()
	raised.Encoding.LengthDependent = rope.LengthDependent{Trained: 64, NTK: 2}
	own := scaled("linear:factor=4")
	own.Scale = 0.2
	single := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 2, Encoding: rope.Encoding{Frequencies: []float64{0.5}}}
	for name, c := range map[string]struct {
		a            rope.Attention
		spec         string
		err, warning string
	}{
		"lists":                      {a: odd, spec: "linear:factor=2,base=original", err: "is not recognised (they are not the powers of one base: pair"},
		"lists, carried":             {a: odd, spec: "linear:factor=2,base=carried"},
		"lists, not said":            {a: odd, spec: "linear:factor=2", warning: "if they are already scaled, this scaling is added to the earlier one (base=carried confirms"},
		"a gain alone":               {a: gained, spec: "linear:factor=2,base=original", err: "the frequencies show no scaling that explains the gain 1.2 in the graph"},
		"a gain alone, carried":      {a: gained, spec: "linear:factor=2,base=carried"},
		"a scale that may be a gain": {a: byParts, spec: "linear:factor=2,base=original", err: "times the usual one, may be YaRN's gain"},
		"a gain that is not its own": {a: linear, spec: "linear:factor=2,base=original", err: "does not explain the gain 1.2 in the graph"},
		"a scale beside its gain":    {a: yarn, spec: "linear:factor=2,base=original", warning: "leaves the score's scale unchanged: it is 1.6 times the usual scale, which is assumed to be the model's own"},
		"a scale of its own":         {a: own, spec: "linear:factor=2,base=original"},
		"longer calls":               {a: longer, spec: "linear:factor=2,base=original", err: "other frequencies in longer calls"},
		"dynamic NTK":                {a: raised, spec: "linear:factor=2", err: "has dynamic NTK with factor 2, which raises the base in calls that reach more than 64 tokens. To have the same frequencies at every length, give base=original"},
		"dynamic NTK, carried":       {a: raised, spec: "linear:factor=2,base=carried", err: "has dynamic NTK with factor 2"},
		"not scaled":                 {a: llama(), spec: "linear:factor=2,base=original", warning: "base=original has no effect: the frequencies are the powers of one base, 10000, so an earlier change of the base (theta or ntk)"},
		"not scaled, carried":        {a: llama(), spec: "linear:factor=2,base=carried"},
		"one pair":                   {a: single, spec: "linear:factor=2,base=original"},
		"no such word":               {a: llama(), spec: "linear:factor=2,base=new", err: "must be original or carried"},
		"afresh beside the scale":    {a: byParts, spec: "yarn:factor=4,original_max_position_embeddings=2048,rope_theta=10000,base=carried", warning: "replaces the graph's frequencies"},
		"by ntk":                     {a: scaled("ntk:alpha=4"), spec: "linear:factor=2", warning: ""},
	} {
		s, err := rope.ParseSpec(rope.ScalingAxis, c.spec)
		var warnings []string
		if err == nil {
			var got rope.Attention
			got, warnings, err = s.Apply(c.a, rope.Context{})
			if err == nil && name == "a scale of its own" && got.Scale != 0.2 {
				t.Errorf("%s: the scale became %g", name, got.Scale)
			}
		}
		switch {
		case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error %v, %q was expected", name, err, c.err)
		case strings.Join(warnings, "") != "" && c.warning == "", !strings.Contains(strings.Join(warnings, ""), c.warning):
			t.Errorf("%s: warnings %q, %q was expected", name, warnings, c.warning)
		}
	}
}

// Dynamic NTK is taken out by itself: what it leaves is what the graph has in short calls.
func TestDynamicTakenOut(t *testing.T) {
	raised := llama()
	raised.Encoding.LengthDependent = rope.LengthDependent{Trained: 64, NTK: 2}
	got, warnings, err := apply(t, rope.ScalingAxis, "linear:factor=2,base=original", raised, rope.Context{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	want, _, err := apply(t, rope.ScalingAxis, "linear:factor=2", llama(), rope.Context{})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v), %+v was expected", got, err, want)
	}
}

// Hugging Face's dictionaries take the key too.
func TestBaseInRopeParameters(t *testing.T) {
	for _, text := range []string{`{"rope_type": "linear", "factor": 2.0, "base": "original"}`, `{"rope_type": "default", "rope_theta": 10000.0, "base": "original"}`} {
		s, err := rope.ParseRopeParameters([]byte(text))
		if err != nil || !strings.HasSuffix(s.String(), "base=original") {
			t.Errorf("%s: %v, %v", text, s, err)
		}
	}
	if _, err := rope.ParseRopeParameters([]byte(`{"rope_type": "linear", "factor": 2.0, "base": 1}`)); err == nil || !strings.Contains(err.Error(), "is not a text") {
		t.Errorf("a number as base: %v", err)
	}
}
