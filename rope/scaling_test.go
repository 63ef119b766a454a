package rope_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Scalings that transformers does not have equal their formulas in float64
// (testdata/make_scaling.py), rounded once to float32. The factor 3 leaves room
// for starting from frequencies that are float32 themselves.
func TestScalingFormulas(t *testing.T) {
	data, err := os.ReadFile("testdata/scaling.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		N       int       `json:"n"`
		Base    float64   `json:"base"`
		Spec    string    `json:"spec"`
		InvFreq []float64 `json:"inv_freq"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		spec, err := rope.ParseSpec(rope.ScalingAxis, c.Spec)
		if err != nil {
			t.Fatal(err)
		}
		a := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: c.N}
		for i := range c.N / 2 {
			a.Encoding.Frequencies = append(a.Encoding.Frequencies, math.Pow(c.Base, -2*float64(i)/float64(c.N)))
		}
		a.Encoding.Gain = 1.25
		got, _, err := spec.Apply(a, rope.Context{})
		if err != nil {
			t.Fatalf("%s: %v", c.Spec, err)
		}
		if got.Encoding.Gain != 1.25 {
			t.Errorf("%s: the gain became %g", c.Spec, got.Encoding.Gain)
		}
		for i, want := range c.InvFreq {
			if off := ulps(got.Encoding.Frequencies[i], want); off > 3 {
				t.Errorf("%s, n %d, base %g: pair %d turns by %v, want %v (%.1f ulp)", c.Spec, c.N, c.Base, i, got.Encoding.Frequencies[i], want, off)
			}
		}
	}
}
