package rope

import (
	"slices"
	"testing"
)

// gemma4 has the frequencies of Gemma 4's layers that see all keys: transformers 5.24 computes them for a
// base of 1,000,000, heads of 32 channels and a share of 0.25 (_compute_proportional_rope_parameters).
func gemma4() Attention {
	a := Attention{Heads: 4, KVHeads: 2, HeadSize: 32, Encoding: Encoding{Frequencies: make([]float64, 16)}}
	for i, w := range []float32{1, 0.42169651, 0.17782794, 0.074989416} {
		a.Encoding.Frequencies[i] = float64(w)
	}
	return a
}

// Pairs that do not turn hide no base.
func TestBaseWithGaps(t *testing.T) {
	a := gemma4()
	if base, ok := a.Encoding.Base(); !ok || base != 1e6 {
		t.Errorf("the base is %g (%v), 1e6 was expected", base, ok)
	}
	if got, _, ok := Recognise(a, Context{}); ok {
		t.Errorf("it is recognised as scaled by %v", got)
	}
	a.Encoding.Precision = Float16
	for i, w := range a.Encoding.Frequencies {
		a.Encoding.Frequencies[i] = Float16.Round(w)
	}
	if base, ok := a.Encoding.Base(); !ok || base < 0.99e6 || base > 1.01e6 {
		t.Errorf("in float16 the base is %g (%v)", base, ok)
	}
	for name, change := range map[string]func(f []float64){
		"one pair turns":   func(f []float64) { clear(f[1:]) },
		"none turns":       func(f []float64) { clear(f) },
		"one pair is off":  func(f []float64) { f[2] *= 1.001 },
		"gaps close ranks": func(f []float64) { f[3], f[4] = 0.031622775, 0 }, // the power of pair 4
	} {
		a := gemma4()
		change(a.Encoding.Frequencies)
		if base, ok := a.Encoding.Base(); ok {
			t.Errorf("%s: the base is %g", name, base)
		}
	}
}

// Methods leave pairs un-rotated that do not turn, and count the others as the whole head's.
func TestMethodsKeepGaps(t *testing.T) {
	whole := Attention{Heads: 4, KVHeads: 2, HeadSize: 32, Encoding: Encoding{Frequencies: geometric(1e6, 16)}}
	known := Context{Original: 64, Length: 256}
	for _, text := range []string{
		"linear:factor=4", "yarn:factor=4", "ntk:alpha=4", "llama3:factor=4,low_freq_factor=1,high_freq_factor=4", "theta:rope_theta=500000", "yarn:factor=4,rope_theta=500000",
		"resonance", "beta-ary:factor=4", "partial-ntk:factor=4", "dynamic:factor=4", "linear:factor=2,base=original",
	} {
		spec, err := ParseSpec(ScalingAxis, text)
		if err != nil {
			t.Fatal(err)
		}
		got, warnings, err := spec.Apply(gemma4(), known)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want, expected, err := spec.Apply(whole, known)
		if err != nil {
			t.Fatal(err)
		}
		if f, g := got.Encoding.Frequencies, want.Encoding.Frequencies; !slices.Equal(f[:4], g[:4]) || slices.ContainsFunc(f[4:], func(w float64) bool { return w != 0 }) {
			t.Errorf("%s: the frequencies are %v; the first of %v were expected", text, f, g)
		}
		if len(warnings) > len(expected) {
			t.Errorf("%s: warnings %q", text, warnings)
		}
	}
	spec, err := ParseSpec(ScalingAxis, "proportional:partial_rotary_factor=0.5")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := spec.Apply(gemma4(), known)
	if err != nil || got.Encoding.Turning() != 8 || !slices.Equal(got.Encoding.Frequencies[:8], whole.Encoding.Frequencies[:8]) {
		t.Errorf("a larger share gives %v (%v)", got.Encoding.Frequencies, err)
	}
}
