package evaluation

import (
	"math"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
)

// A variant and length that was asked all thirteen tasks has their mean, whose interval is narrower than those of
// the tasks; one of which a task is missing has none.
func TestMeans(t *testing.T) {
	var samples []Sample
	for i, name := range task.Expand([]string{task.Ruler, "passkey"}) {
		for j := range 8 {
			s := Sample{Variant: "a", Task: name, Length: 2048, Index: j, Text: j + 1, Wanted: []string{"x"}}
			if s.Right = i%2 == 0 || j < 4; s.Right { // seven tasks are right, six in half of the samples
				s.Score = 1
			}
			samples = append(samples, s)
			if i > 0 {
				s.Variant = "b" // has twelve
				samples = append(samples, s)
			}
			s.Variant, s.Length = "a", 4096
			if i < 12 {
				samples = append(samples, s)
			}
		}
	}
	got := Summarise(samples, nil).Means
	if len(got) != 1 || got[0].Variant != "a" || got[0].Length != 2048 {
		t.Fatalf("means %+v", got)
	}
	// The ends of Wilson's intervals of 8 of 8 and 4 of 8, by scipy.stats.binomtest(k, 8).proportion_ci(method="wilson").
	right, half, some := 1-0.6755924, 0.5-0.2152161, 0.7847839-0.5
	low := math.Sqrt(7*right*right+6*half*half) / 13
	high := math.Sqrt(6*some*some) / 13
	if m := got[0]; math.Abs(m.Score-10.0/13) > 1e-12 || math.Abs(m.Score-m.Low-low) > 1e-6 || math.Abs(m.High-m.Score-high) > 1e-6 {
		t.Errorf("%+v, want %.4f from %.6f to %.6f", m, 10.0/13, 10.0/13-low, 10.0/13+high)
	}
}
