package evaluation

import (
	"math"
	"testing"
)

// The intervals are those of statsmodels 0.14: proportion_confint(right, n, method="wilson").
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		right, n  int
		low, high float64
	}{
		{0, 20, 0, 0.1611251581},
		{20, 20, 0.8388748419, 1},
		{8, 10, 0.4901624715, 0.9433178485},
		{1, 3, 0.0614919447, 0.7923403992},
		{0, 0, 0, 1},
	} {
		low, high := wilson(c.right, c.n)
		if math.Abs(low-c.low) > 1e-9 || math.Abs(high-c.high) > 1e-9 {
			t.Errorf("%d of %d: %.10f to %.10f, want %.10f to %.10f", c.right, c.n, low, high, c.low, c.high)
		}
	}
}

// Two windows of 600 tokens with simple numbers: up to 300 tokens 255 have the first block's mean
// and 44 the second's.
func TestReading(t *testing.T) {
	windows := []Sample{
		{Variant: "v", Task: Perplexity, Length: 600, LogLoss: []float64{1, 2, 3}},
		{Variant: "v", Task: Perplexity, Length: 600, Index: 1, LogLoss: []float64{2, 3, 4}},
	}
	s := Summarise(windows, []int{300, 600, 700})
	if len(s.Readings) != 2 || len(s.Curves) != 1 {
		t.Fatalf("%d readings and %d curves, want 2 and 1", len(s.Readings), len(s.Curves))
	}
	first := (255*1.0+44*2.0)/299 + 0.5
	half := z * math.Sqrt(0.5/2) // two means that are 1 apart
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"at 300", s.Readings[0].Perplexity, math.Exp(first)},
		{"its low end", s.Readings[0].Low, math.Exp(first - half)},
		{"its high end", s.Readings[0].High, math.Exp(first + half)},
		{"the last 512 of 300", s.Readings[0].Last, math.Exp(first)},
		{"the last 512 of 600", s.Readings[1].Last, math.Exp((168*1.0+256*2+88*3)/512 + 0.5)},
		{"the third block", s.Curves[0].Perplexity[2], math.Exp(3.5)},
	} {
		if math.Abs(c.got-c.want) > 1e-12*c.want {
			t.Errorf("%s: %.12g, want %.12g", c.what, c.got, c.want)
		}
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
