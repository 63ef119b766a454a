package evaluation

import (
	"math"
	"testing"
)

// groupsOf are texts of samples with these scores.
func groupsOf(asked int, texts ...[]float64) (list []group) {
	for i, scores := range texts {
		g := group{text: i + 1, samples: len(scores), asked: asked * len(scores)}
		for _, s := range scores {
			g.score += s
		}
		list = append(list, g)
	}
	return list
}

// The interval is Wilson's of as many samples as it should be: by hand, with Student's quantile 3.18245 of three
// degrees of freedom and 12.7062 of one.
func TestInterval(t *testing.T) {
	one := func(scores ...float64) (texts [][]float64) {
		for _, s := range scores {
			texts = append(texts, []float64{s})
		}
		return texts
	}
	three, single := math.Pow(3.182446305284263/z, 2), math.Pow(12.706204736174707/z, 2)
	for name, c := range map[string]struct {
		groups       []group
		score, alike float64
	}{
		"right and wrong, a text each":        {groupsOf(1, one(1, 1, 1, 0)...), 0.75, 4},
		"all right, a text each":              {groupsOf(1, one(1, 1, 1, 1)...), 1, 4},
		"all right in two texts":              {groupsOf(1, []float64{1, 1, 1}, []float64{1, 1, 1}), 1, 2},
		"texts that are all right or wrong":   {groupsOf(1, []float64{1, 1, 1}, []float64{0, 0, 0}), 0.5, 2},
		"one text":                            {groupsOf(1, []float64{1, 0, 1, 1}), 0.75, 1},
		"texts that are alike":                {groupsOf(1, []float64{1, 0}, []float64{1, 0}), 0.5, 4},
		"shares of ten that are the same":     {groupsOf(10, one(0.5, 0.5, 0.5)...), 0.5, 30},
		"shares of ten":                       {groupsOf(10, one(0.4, 0.6, 0.4, 0.6)...), 0.5, 0.25 / (4. / 3 * 0.04 / 16 * three)},
		"texts with different numbers":        {groupsOf(1, []float64{1, 1, 0}, []float64{1}), 0.75, max(2, 0.1875/(2*0.125/16*single))},
		"nothing of ten, a text each":         {groupsOf(10, one(0, 0, 0)...), 0, 3},
		"right and wrong in texts of several": {groupsOf(1, []float64{1, 1, 1, 0}, []float64{1, 1, 0, 1}, []float64{1, 1, 1, 1}, []float64{0, 1, 1, 1}), 13. / 16, 0.15234375 / (4. / 3 * (3*0.0625 + 0.5625) / 256 * three)},
	} {
		score, low, high := interval(c.groups)
		wantLow, wantHigh := wilson(c.score, c.alike)
		if math.Abs(score-c.score) > 1e-12 || math.Abs(low-wantLow) > 1e-9 || math.Abs(high-wantHigh) > 1e-9 {
			t.Errorf("%s: %.6f from %.6f to %.6f, want %.6f from %.6f to %.6f", name, score, low, high, c.score, wantLow, wantHigh)
		}
	}
	if _, low, high := interval(nil); low != 0 || high != 1 {
		t.Errorf("of nothing: %g to %g", low, high)
	}
}

// A cell has the mean score of its samples, and a condition holds by the lower end of its interval.
func TestScoresOfCell(t *testing.T) {
	var samples []Sample
	for i := range 6 {
		samples = append(samples, Sample{Variant: "a", Task: "vt", Length: 100, Index: i, Text: 1 + i/2, Score: 0.8, Wanted: []string{"A", "B", "C", "D", "E"}})
	}
	samples[5].Score, samples[5].Right = 1, true
	s := Summarise(samples, []int{100})
	c := s.Cells[0]
	if c.Texts != 3 || c.Samples != 6 || c.Right != 1 || math.Abs(c.Score-5./6) > 1e-12 || c.Low < 0.4 || c.Low > c.Score {
		t.Errorf("%+v", c)
	}
	if all := OverDepths(s.Cells)[0]; all.Low != c.Low || all.Texts != 3 {
		t.Errorf("over all depths: %+v, want %+v", all, c)
	}
	for text, want := range map[string]bool{"vt@100>=0.4": true, "vt@100>=0.83": false} {
		check, err := ParseCheck(text)
		if err != nil {
			t.Fatal(err)
		}
		if holds, found := check.Holds(s, "a"); holds != want || found[:19] != "a mean score of 0.8" {
			t.Errorf("%s: %v, %s", text, holds, found)
		}
	}
}
