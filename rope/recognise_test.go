package rope

import (
	"testing"

	"pgregory.net/rapid"
)

// What a method made of the powers of a base is recognised as that method.
func TestRecognise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom([]float64{10000, 500000, 1e6, 150000}).Draw(t, "base")
		pairs := rapid.SampledFrom([]int{8, 16, 32, 64}).Draw(t, "pairs")
		text := rapid.SampledFrom([]string{
			"linear:factor=4", "linear:factor=2.5",
			"yarn:factor=4,original_max_position_embeddings=4096", "yarn:factor=32,original_max_position_embeddings=4096",
			"yarn:factor=16,original_max_position_embeddings=32768",
			"ntk-by-parts:factor=8,original_max_position_embeddings=2048",
			"llama3:factor=8,original_max_position_embeddings=8192,low_freq_factor=1,high_freq_factor=4",
		}).Draw(t, "spec")
		spec, err := ParseSpec(ScalingAxis, text)
		if err != nil {
			t.Fatal(err)
		}
		a := Attention{Heads: 1, KVHeads: 1, HeadSize: 2 * pairs, Encoding: Encoding{Frequencies: geometric(base, pairs)}}
		scaled, _, err := spec.Apply(a, Context{})
		if err != nil {
			t.Fatal(err)
		}
		turning := rapid.SampledFrom([]int{pairs, pairs / 2, pairs - 1}).Draw(t, "turning")
		clear(scaled.Encoding.Frequencies[turning:])
		got, gotBase, ok := Recognise(scaled, Context{})
		if turning < pairs { // the few that the method changed may be what another one makes of them
			if _, plain := scaled.Encoding.Base(); plain {
				return
			}
			spec.Name, gotBase = got.Name, base
		}
		if !ok || gotBase != base || got.Name != spec.Name {
			t.Fatalf("%s on base %g is recognised as %v on %g (%v)", text, base, got, gotBase, ok)
		}
		again, _, err := got.Apply(a, Context{})
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range again.Encoding.Frequencies[:turning] {
			if d := w - scaled.Encoding.Frequencies[i]; d > 1e-6*w || -d > 1e-6*w {
				t.Errorf("%s: pair %d turns by %g, %g was expected", got, i, w, scaled.Encoding.Frequencies[i])
			}
		}
	})
}

// Frequencies that no method gives are unchanged.
func TestRecogniseNothing(t *testing.T) {
	for name, change := range map[string]func(f []float64){
		"unscaled":                func([]float64) {},
		"one pair other":          func(f []float64) { f[3] *= 1.001 },
		"slow pairs halved":       func(f []float64) { f[6] /= 2; f[7] /= 2.2 },
		"a pair without rotation": func(f []float64) { f[2] = 0 },
	} {
		f := geometric(10000, 8)
		change(f)
		if spec, base, ok := Recognise(Attention{HeadSize: 16, Encoding: Encoding{Frequencies: f}}, Context{Original: 4096, Theta: 10000}); ok {
			t.Errorf("%s is recognised as %v on %g", name, spec, base)
		}
	}
}
