package rope_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// otherSense turns some pairs of an attention the other way.
func otherSense(a rope.Attention, senses []float64) rope.Attention {
	a = a.Clone()
	for i, s := range senses {
		a.Encoding.Frequencies[i] *= s
		if a.Encoding.LengthDependent.Long != nil {
			a.Encoding.LengthDependent.Long[i] *= s
		}
	}
	return a
}

// drawSenses makes a sense for each of the pairs.
func drawSenses(t *rapid.T, pairs int) []float64 {
	return rapid.SliceOfN(rapid.SampledFrom([]float64{1, -1}), pairs, pairs).Draw(t, "senses")
}

// checkSenses says whether a spec does the same to pairs that turn the other way.
func checkSenses(t *rapid.T, s rope.Spec, c rope.Context, senses []float64) error {
	t.Helper()
	forwards, said, refused := s.Apply(llama(), c)
	got, more, err := s.Apply(otherSense(llama(), senses), c)
	if (err == nil) != (refused == nil) || !reflect.DeepEqual(said, more) {
		t.Fatalf("%v: %v, %v; forwards %v, %v", s, err, more, refused, said)
	}
	if err == nil && !reflect.DeepEqual(got, otherSense(forwards, senses)) {
		t.Fatalf("%v on %v gives %+v, forwards %+v", s, senses, got, forwards)
	}
	return err
}

// TestSenses: every method does to a pair that turns the other way what it does
// to one that turns forwards, and keeps its sense.
func TestSenses(t *testing.T) {
	list := "[" + strings.Repeat("1.5;", 31) + "2]"
	specs := map[string]string{
		"none": "", "theta": "rope_theta=500000", "linear": "factor=4", "ntk": "alpha=4", "dynamic-linear": "", "dynamic": "factor=2,length=run",
		"partial-ntk": "factor=4", "ntk-by-parts": "factor=4,rope_theta=500000", "yarn": "factor=4", "longrope": "length=run,factor=4,short_factor=" + list + ",long_factor=" + list,
		"llama3": "factor=4,low_freq_factor=1,high_freq_factor=4", "proportional": "partial_rotary_factor=0.5,factor=2", "beta-ary": "factor=4",
		"resonance": "", "nope": "", "log-n": "", "temperature": "", "frequencies": "inv_freq=" + list,
	}
	for m := range rope.Methods() {
		if m.Axis != rope.ScalingAxis {
			continue
		}
		text, ok := specs[m.Name]
		if !ok {
			t.Errorf("%s has no spec here", m.Name)
		}
		if text != "" {
			text = ":" + text
		}
		s, err := rope.ParseSpec(rope.ScalingAxis, m.Name+text)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			if err := checkSenses(t, s, rope.Context{Length: 32768, Original: 8192}, drawSenses(t, 32)); err != nil {
				t.Fatal(err)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		checkSenses(t, drawSpec(t), rope.Context{Length: 32768, Original: 8192}, drawSenses(t, 32)) // refusals are the same too
	})
}

// A graph's own frequencies by length stay with methods that change none.
func TestSensesOfReach(t *testing.T) {
	a := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 4, Encoding: rope.Encoding{
		Frequencies: []float64{-1, 0.01}, LengthDependent: rope.LengthDependent{Trained: 64, Long: []float64{-0.5, 0.005}},
	}}
	got, _, err := rope.Spec{Axis: rope.ScalingAxis, Name: "temperature"}.Apply(a, rope.Context{})
	if err != nil || !reflect.DeepEqual(got.Encoding, a.Encoding) {
		t.Errorf("%+v, %v", got.Encoding, err)
	}
}

// A scaling in the graph is recognised whichever way its pairs turn.
func TestRecogniseOtherSense(t *testing.T) {
	yarn, _, err := apply(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=4096", llama(), rope.Context{})
	if err != nil {
		t.Fatal(err)
	}
	senses := make([]float64, 32)
	for i := range senses {
		senses[i] = math.Copysign(1, float64(i%3)-0.5)
	}
	got, base, ok := rope.Recognise(otherSense(yarn, senses), rope.Context{})
	if !ok || base != 10000 || got.String() != "yarn:factor=4,original_max_position_embeddings=4096" {
		t.Errorf("recognised as %v on %g (%v)", got, base, ok)
	}
}
