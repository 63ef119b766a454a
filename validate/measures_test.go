package validate

import (
	"math"
	"slices"
	"testing"
)

// By hand: two tokens after padding, of three logits each.
func TestMeasure(t *testing.T) {
	a := []float64{9, 9, 9, 0, math.Log(2), 0, 0, 0, math.Log(2)}
	b := []float64{0, 0, 0, 0, math.Log(2), 0, math.Log(2), 0, 0}
	m := measure(a, b, []int64{0, 1, 1}, 3)
	kl := 0.5*math.Log(2) - 0.25*math.Log(2) // p = (1, 1, 2)/4 against q = (2, 1, 1)/4
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"mean", m.Mean, 2 * math.Log(2) / 3 / 2}, {"KL", m.KL, kl / 2}, {"largest KL", m.MaxKL, kl},
		{"top-1", m.Top1, 0.5}, {"top-5", m.Top5, 1}, {"first", float64(m.First), 2},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.what, c.got, c.want)
		}
	}
	if same := measure(a, a, []int64{1, 1, 1}, 3); same.First != -1 || same.KL != 0 || same.Top1 != 1 {
		t.Errorf("a model against itself: %+v", same)
	}
}

func TestLargest(t *testing.T) {
	if got := largest([]float64{1, 5, 3, 5, 4, 0, 2}, 5); !slices.Equal(got, []int{1, 3, 4, 2, 6}) {
		t.Errorf("the five largest are at %v", got)
	}
	if got := largest([]float64{1, 2}, 5); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("of two they are at %v", got)
	}
}
