package encoding_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
)

// golden reads one part of testdata/encodings.json, which make_encodings.py wrote without this package.
func golden[T any](t *testing.T, part string) []T {
	t.Helper()
	data, err := os.ReadFile("testdata/encodings.json")
	if err != nil {
		t.Fatal(err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		t.Fatal(err)
	}
	var cases []T
	if err := json.Unmarshal(parts[part], &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 3 {
		t.Fatalf("%s has only %d cases", part, len(cases))
	}
	return cases
}

// Errors of one rounding, relative.
const (
	unit32 = 1.0 / (1 << 24)
	unit64 = 1.0 / (1 << 53)
)

// near fails where got is farther from want than bound.
func near(t *testing.T, what string, got, want, bound float64) {
	t.Helper()
	if !(math.Abs(got-want) <= bound) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// distances are DISTANCES of make_encodings.py.
func distances() (list []int64) {
	for d := range int64(40) {
		list = append(list, d)
	}
	return append(list, 63, 64, 65, 127, 128, 129, 1000, 4095, 131071)
}

// BLOOM takes each slope as a power of the first in float32, MPT as one power of two.
func TestSlopes(t *testing.T) {
	for _, c := range golden[struct {
		Heads      int
		Bloom, MPT []float64
	}](t, "alibi") {
		got := encoding.Slopes(c.Heads)
		if len(got) != c.Heads || len(c.Bloom) != c.Heads || len(c.MPT) != c.Heads {
			t.Fatalf("%d slopes for %d heads", len(got), c.Heads)
		}
		for h, slope := range got {
			what := fmt.Sprintf("slope %d of %d", h, c.Heads)
			near(t, what+" by MPT", slope, c.MPT[h], 4*unit32*slope)
			// An error of the first power is raised with it; this is at most the number of heads times.
			near(t, what+" by BLOOM", slope, c.Bloom[h], 2*float64(c.Heads+1)*unit32*slope)
			near(t, "bias at 100", encoding.ALiBi{Slope: slope}.Bias(100), -100*slope, 0)
			near(t, "bias at -100", encoding.ALiBi{Slope: slope}.Bias(-100), -100*slope, 0)
		}
	}
}

func TestT5(t *testing.T) {
	for _, c := range golden[struct {
		Bidirectional bool
		Buckets       int
		MaxDistance   int64 `json:"max_distance"`
		Distances     []int64
		Bucket        []int
	}](t, "t5") {
		b := encoding.T5{Buckets: c.Buckets, MaxDistance: c.MaxDistance, Bidirectional: c.Bidirectional}
		learned := make([]float64, c.Buckets)
		for i := range learned {
			learned[i] = 0.5 * float64(i)
		}
		bias := b.Biases(learned)
		for i, d := range c.Distances {
			if got := b.Bucket(d); got != c.Bucket[i] {
				t.Errorf("%+v: distance %d is in bucket %d, want %d", b, d, got, c.Bucket[i])
			}
			near(t, "learned bias", bias(d), 0.5*float64(c.Bucket[i]), 0)
			if b.Buckets == 32 && b.MaxDistance == 128 && (encoding.T5{Bidirectional: c.Bidirectional}).Bucket(d) != c.Bucket[i] {
				t.Errorf("the zero value has another bucket for distance %d", d)
			}
		}
	}
}

func TestKERPLE(t *testing.T) {
	for _, c := range golden[struct {
		R1, R2     float64
		Log, Power []float64
	}](t, "kerple") {
		for i, d := range distances() {
			what := fmt.Sprintf("r1 %g, r2 %g, distance %d", c.R1, c.R2, d)
			// The sum under NumPy's logarithm is rounded, which counts most where the logarithm is small.
			near(t, what, encoding.KERPLELog{R1: c.R1, R2: c.R2}.Bias(float64(-d)), c.Log[i], 4*unit64*(c.R1+math.Abs(c.Log[i])))
			if c.Power != nil {
				near(t, what, encoding.KERPLEPower{R1: c.R1, R2: c.R2}.Bias(float64(-d)), c.Power[i], 8*unit64*math.Abs(c.Power[i]))
			}
		}
	}
}

func TestSandwich(t *testing.T) {
	for _, c := range golden[struct {
		Pairs, Heads, Head int
		Bias               []float64
	}](t, "sandwich") {
		s := encoding.Sandwich{Pairs: c.Pairs, Factor: encoding.SandwichFactors(c.Heads)[c.Head]}
		for i, d := range distances() {
			// Each angle is rounded to a share of the largest, of 131,071 tokens, in a few places.
			near(t, fmt.Sprintf("%+v, distance %d", s, d), s.Bias(float64(d)), c.Bias[i], 8*unit64*131071*s.Factor*float64(c.Pairs))
		}
	}
	if n := len(encoding.Sandwich{}.Frequencies()); n != 64 {
		t.Errorf("the zero value has %d cosines", n)
	}
}
