package rope_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// hfCase is one vector of testdata/hf.json (see make_hf.py).
type hfCase struct {
	HeadDim          int             `json:"head_dim"`
	RopeParameters   json.RawMessage `json:"rope_parameters"`
	DefaultInvFreq   float32s        `json:"default_inv_freq"`
	InvFreq          float32s        `json:"inv_freq"`
	AttentionScaling float64         `json:"attention_scaling"`
	Context          int64           `json:"context"` // max_position_embeddings, with Length
	Length           int64           `json:"length"`
}

// float32s are the float32 numbers whose shortest decimals the file holds.
type float32s []float64

func (f *float32s) UnmarshalJSON(data []byte) error {
	var short []float32
	if err := json.Unmarshal(data, &short); err != nil {
		return err
	}
	for _, x := range short {
		*f = append(*f, float64(x))
	}
	return nil
}

func hfCases(t testing.TB) []hfCase { return hfCasesOf(t, "cases") }

func hfCasesOf(t testing.TB, list string) []hfCase {
	t.Helper()
	data, err := os.ReadFile("testdata/hf.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	var cases []hfCase
	if err := json.Unmarshal(file[list], &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 100 {
		t.Fatalf("only %d %s in hf.json", len(cases), list)
	}
	return cases
}

// attention is what is measured in the case's unscaled model.
func (c hfCase) attention() rope.Attention {
	return rope.Attention{
		Heads: 4, KVHeads: 2, HeadSize: c.HeadDim,
		Encoding: rope.Encoding{Frequencies: c.DefaultInvFreq},
		Mask:     rope.Mask{Causal: true},
	}
}

// ulps is the distance of two float64 in units of the last place of float32.
func ulps(got, want float64) float64 {
	w := float32(want)
	unit := float64(math.Nextafter32(w, math.MaxFloat32)) - float64(w)
	return math.Abs(got-want) / unit
}

// Frequencies and gains equal transformers' to a few float32 roundings, both
// from the measured frequencies and computed from rope_theta.
func TestHuggingFace(t *testing.T) {
	worst := map[string]float64{}
	for i, c := range append(hfCases(t), hfCasesOf(t, "by_length")...) {
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(c.RopeParameters, &keys); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{"rope_theta", "measured"} {
			if from == "measured" {
				delete(keys, "rope_theta")
			}
			data, err := json.Marshal(keys)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%d/%s", i, from), func(t *testing.T) {
				spec, err := rope.ParseRopeParameters(data)
				if err != nil {
					t.Fatal(err)
				}
				a, _, err := spec.Apply(c.attention(), rope.Context{Length: c.Length, Original: c.Context})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := a.Encoding.EffectiveGain(), c.AttentionScaling; math.Abs(got-want) > 1e-15*want {
					t.Errorf("%v: gain %v, transformers has %v", spec, got, want)
				}
				if got, want := len(a.Encoding.Frequencies), len(c.InvFreq); got != want {
					t.Fatalf("%v: %d frequencies, transformers has %d", spec, got, want)
				}
				for pair, want := range c.InvFreq {
					got := a.Encoding.Frequencies[pair]
					if got != float64(float32(got)) {
						t.Errorf("%v: frequency %v of pair %d is no float32", spec, got, pair)
					}
					off := ulps(got, want)
					worst[spec.Name+" "+from] = max(worst[spec.Name+" "+from], off)
					if off > 3 { // power, reciprocal or division, blend: half a unit to one each
						t.Errorf("%v: frequency %v of pair %d, transformers has %v: %.0f ulp", spec, got, pair, want, off)
					}
				}
			})
		}
	}
	t.Logf("largest distance from transformers in float32 ulp: %v", worst)
}

// The base of every unscaled model is found, whole numbers exactly; no scaled one has a base.
func TestBase(t *testing.T) {
	for _, c := range hfCases(t) {
		var keys struct {
			Type   string  `json:"rope_type"`
			Theta  float64 `json:"rope_theta"`
			Factor float64 `json:"factor"`
		}
		if err := json.Unmarshal(c.RopeParameters, &keys); err != nil {
			t.Fatal(err)
		}
		got, ok := rope.Encoding{Frequencies: c.DefaultInvFreq}.Base()
		tolerance := 0.0 // but one with many digits is known to float32 only
		if keys.Theta != math.Trunc(keys.Theta) {
			tolerance = 8.0 / (1 << 24)
		}
		if !ok || math.Abs(got/keys.Theta-1) > tolerance {
			t.Errorf("head %d: base %v %v, want %v", c.HeadDim, got, ok, keys.Theta)
		}
		if keys.Factor <= 1 {
			continue
		}
		if scaled, ok := (rope.Encoding{Frequencies: c.InvFreq}).Base(); ok && !equal(c.InvFreq, c.DefaultInvFreq) {
			t.Errorf("%s: scaled frequencies have base %v", c.RopeParameters, scaled)
		}
	}
}

// A measurement errs by up to 1e-7; the base is still found, and YaRN's ramp
// with it.
func TestBaseOfMeasurement(t *testing.T) {
	cases := hfCases(t)
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(cases).Draw(t, "case")
		want, ok := rope.Encoding{Frequencies: c.DefaultInvFreq}.Base()
		if !ok {
			t.Fatal("no base without noise")
		}
		r := rand.New(rand.NewPCG(4, rapid.Uint64().Draw(t, "seed")))
		noisy := make([]float64, len(c.DefaultInvFreq))
		for i, omega := range c.DefaultInvFreq {
			noisy[i] = omega * (1 + 1e-7*(2*r.Float64()-1))
		}
		if got, ok := (rope.Encoding{Frequencies: noisy}).Base(); !ok || math.Abs(got/want-1) > 1e-6 {
			t.Fatalf("base %v %v, want %v", got, ok, want)
		}
	})
}

func equal(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}
