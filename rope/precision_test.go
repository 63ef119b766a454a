package rope_test

import (
	"math"
	"testing"

	"github.com/x448/float16"
	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

func TestPrecisionRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float32Range(-65000, 65000).Draw(t, "x")
		if rapid.Bool().Draw(t, "small") {
			x *= 1e-8
		}
		if got, want := rope.Float16.Round(float64(x)), float64(float16.Fromfloat32(x).Float32()); got != want {
			t.Fatalf("%g becomes %g in float16, %g was expected", x, got, want)
		}
		if got := rope.Float32.Round(float64(x)); got != float64(x) {
			t.Fatalf("%g becomes %g in float32", x, got)
		}
		b := math.Float32bits(x)
		want := float64(math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff))
		if got := rope.BFloat16.Round(float64(x)); got != want {
			t.Fatalf("%g becomes %g in bfloat16, %g was expected", x, got, want)
		}
	})
}

func TestPrecisionEpsilon(t *testing.T) {
	for p, want := range map[rope.Precision]float64{rope.Float32: 0x1p-23, rope.Float16: 0x1p-10, rope.BFloat16: 0x1p-7} {
		if got := p.Epsilon(); got != want || p.Spacing(1) != want || p.Spacing(-1.5) != want || p.Spacing(0.75) != want/2 {
			t.Errorf("type %d: %g, %g was expected", p, got, want)
		}
	}
	if got := rope.Float16.Spacing(1e-7); got != 0x1p-24 {
		t.Errorf("the smallest numbers of float16 are %g apart, 2^-24 was expected", got)
	}
}

// TestRoundedBase expects the base of frequencies that a model keeps in 16 bits.
func TestRoundedBase(t *testing.T) {
	for _, p := range []rope.Precision{rope.Float16, rope.BFloat16} {
		for _, pairs := range []int{4, 8, 32, 64} {
			for _, base := range []float64{10000, 100000, 130000, 500000, 1e6} {
				e := rope.Encoding{Precision: p, Frequencies: make([]float64, pairs)}
				for i := range e.Frequencies {
					e.Frequencies[i] = p.Round(math.Pow(base, -float64(i)/float64(pairs)))
				}
				if got, ok := e.Base(); !ok || got != base {
					t.Errorf("type %d, %d pairs: base %g (%v), %g was expected", p, pairs, got, ok, base)
				}
				e.Frequencies[pairs/2] *= 0.5
				if got, ok := e.Base(); ok {
					t.Errorf("type %d, %d pairs: base %g although a frequency is halved", p, pairs, got)
				}
			}
		}
	}
	e := rope.Encoding{Precision: rope.Float16, Frequencies: make([]float64, 8)}
	for i := range e.Frequencies {
		e.Frequencies[i] = rope.Float16.Round(math.Pow(10007, -float64(i)/8))
	}
	if got, ok := e.Base(); !ok || math.Abs(got-10007) > 5 {
		t.Errorf("base %g (%v), 10007 within what float16 can tell was expected", got, ok)
	}
}
