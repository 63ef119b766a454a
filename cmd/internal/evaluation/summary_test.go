package evaluation

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// The intervals are those of statsmodels 0.14: proportion_confint(right, n, method="wilson").
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		right, n  float64
		low, high float64
	}{
		{0, 20, 0, 0.1611251581},
		{20, 20, 0.8388748419, 1},
		{8, 10, 0.4901624715, 0.9433178485},
		{1, 3, 0.0614919447, 0.7923403992},
		{0, 0, 0, 1},
	} {
		low, high := wilson(c.right/max(c.n, 1), c.n)
		if math.Abs(low-c.low) > 1e-9 || math.Abs(high-c.high) > 1e-9 {
			t.Errorf("%g of %g: %.10f to %.10f, want %.10f to %.10f", c.right, c.n, low, high, c.low, c.high)
		}
	}
}

// The quantiles are scipy's (testdata/evaluate.py).
func TestStudent(t *testing.T) {
	b, err := os.ReadFile("testdata/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Student map[int]float64 }
	if err := json.Unmarshal(b, &golden); err != nil || len(golden.Student) == 0 {
		t.Fatal(err)
	}
	for freedom, want := range golden.Student {
		if got := student(freedom); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%d degrees of freedom: %.12g, want %.12g", freedom, got, want)
		}
	}
}

// A reading takes the tokens up to its length, and the last 512 of these: of losses 0, 1, 2, … the
// mean up to 700 is 350 and that of the last 512 is 443.5, though 700 is no multiple of a block.
func TestReading(t *testing.T) {
	losses := make([]float64, 1000)
	for i := range losses {
		losses[i] = float64(i)
	}
	for _, u := range upTo(losses, []int{1, 300, 512, 700, 1000, 1001}) {
		all, end := float64(u.Length)/2, float64(max(u.Length-512, 1)+u.Length-1)/2
		if u.All != all || u.Last != end {
			t.Errorf("%+v, want %g and %g", u, all, end)
		}
	}
	windows := []Sample{
		{Variant: "v", Task: Perplexity, Length: 600, LogLoss: []float64{1, 2, 3}, UpTo: []UpTo{{300, 1, 2}, {600, 2, 3}}},
		{Variant: "v", Task: Perplexity, Length: 600, Index: 1, LogLoss: []float64{2, 3, 4}, UpTo: []UpTo{{300, 2, 3}, {600, 3, 5}}},
	}
	s := Summarise(windows, []int{300, 600, 700})
	if s.Readings[0].Loss != nil || len(s.Readings) != 2 || len(s.Curves) != 1 {
		t.Fatalf("%d readings and %d curves, want 2 and 1", len(s.Readings), len(s.Curves))
	}
	half := 12.706204736174707 * 0.5 // two means that are 1 apart
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"at 300", s.Readings[0].Perplexity, math.Exp(1.5)},
		{"its low end", s.Readings[0].Low, math.Exp(1.5 - half)},
		{"its high end", s.Readings[0].High, math.Exp(1.5 + half)},
		{"the last of 600", s.Readings[1].Last, math.Exp(4)},
		{"the third block", s.Curves[0].Perplexity[2], math.Exp(3.5)},
	} {
		if math.Abs(c.got-c.want) > 1e-9*c.want {
			t.Errorf("%s: %.12g, want %.12g", c.what, c.got, c.want)
		}
	}
	// Two windows that differ a lot: JSON has no infinity.
	windows[0].UpTo[0].All = 1000
	if r := Summarise(windows, []int{300}).Readings[0]; math.IsInf(r.High, 0) || r.High < 1e300 {
		t.Errorf("the high end is %g", r.High)
	}
}

func TestSummariseCells(t *testing.T) {
	var samples []Sample
	for i := range 4 {
		samples = append(samples,
			Sample{Variant: "a", Task: "passkey", Length: 100, Depth: 0.1, Index: i, Right: i < 3},
			Sample{Variant: "a", Task: "passkey", Length: 100, Depth: 0.9, Index: i, Right: true},
			Sample{Variant: "b", Task: "passkey", Length: 100, Depth: 0.1, Index: i})
	}
	s := Summarise(samples, []int{100})
	if len(s.Cells) != 3 || s.Cells[0].Right != 3 || s.Cells[0].Rate != 0.75 || s.Cells[2].Rate != 0 {
		t.Errorf("the cells are %+v", s.Cells)
	}
	if all := OverDepths(s.Cells); len(all) != 2 || all[0].Right != 7 || all[0].Samples != 8 {
		t.Errorf("over all depths they are %+v", all)
	}
	for text, want := range map[string]bool{"passkey@100>=0.52": true, "passkey@100>=0.53": false} { // Wilson's 7 of 8 begins at 0.5291
		c, err := ParseCheck(text)
		if err != nil {
			t.Fatal(err)
		}
		if holds, found := c.Holds(s, "a"); holds != want {
			t.Errorf("%s: %v, %s", text, holds, found)
		}
	}
}

func TestParseCheck(t *testing.T) {
	for _, text := range []string{"", "passkey", "passkey@12K", "passkey@12K>0.9", "passkey@12K<=0.9", "passkey@12K>=1.5", "pass@1K>=0.5", "perplexity@1K>=9", "perplexity@1K<=0.5", "passkey@K>=0.5", "passkey@1K>=0.5.5"} {
		if c, err := ParseCheck(text); err == nil {
			t.Errorf("%q was read as %+v", text, c)
		}
	}
	c, err := ParseCheck("perplexity@8K<=15.5")
	if err != nil || c.length != 8192 || c.bound != 15.5 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := c.In(Plan{Tasks: []string{"passkey"}, Lengths: []int{8192}}); err == nil {
		t.Error("a condition on what is not measured was accepted")
	}
}

// A variant is compared with the first one window by window: losses that are 0.1 and 0.3 more are 0.2 more,
// give or take the interval of these two numbers, however different the windows are.
func TestLossBeside(t *testing.T) {
	window := func(variant string, index int, all float64) Sample {
		return Sample{Variant: variant, Task: Perplexity, Length: 600, Index: index, LogLoss: []float64{all}, UpTo: []UpTo{{600, all, all}}}
	}
	s := Summarise([]Sample{window("a", 0, 1), window("a", 1, 5), window("b", 1, 5.3), window("b", 0, 1.1), window("c", 0, 1)}, []int{600})
	half := 12.706204736174707 * 0.1
	if a, b, c := s.Readings[0].Loss, s.Readings[1].Loss, s.Readings[2].Loss; a != nil || c != nil || b == nil ||
		math.Abs(b.Mean-0.2) > 1e-12 || math.Abs(b.Low-0.2+half) > 1e-12 || math.Abs(b.High-0.2-half) > 1e-12 {
		t.Errorf("the losses are %+v, %+v and %+v", a, b, c)
	}
}
