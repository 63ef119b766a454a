package encoding_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
)

func TestXPos(t *testing.T) {
	for _, c := range golden[struct {
		Pairs       int
		Gamma, Base float64
		Zeta        []float64
		Distances   []int64
		Decay       [][]float64
	}](t, "xpos") {
		x := encoding.XPos{Pairs: c.Pairs, Gamma: c.Gamma, DecayBase: c.Base}
		if c.Gamma == 0.4 && c.Base == 512 {
			x = encoding.XPos{Pairs: c.Pairs}
		}
		for i, zeta := range x.Zetas() {
			near(t, "zeta", zeta, c.Zeta[i], 4*unit64)
		}
		for place, d := range c.Distances {
			// Near a far position, and a key that lies back by the distance.
			const far = 131071
			query, _ := x.Factors(far, far-200)
			_, key := x.Factors(far-d, far-200)
			for i, want := range c.Decay[place] {
				what := fmt.Sprintf("%+v, pair %d, distance %d", x, i, d)
				near(t, what, x.Decay(i, float64(d)), want, 64*unit64*want)
				near(t, what+", as a product", query[i]*key[i], want, 64*unit64*want)
			}
		}
	}
}

// Marian computes its table in float64 and rounds it to float32.
func TestSinusoidal(t *testing.T) {
	for _, c := range golden[struct {
		Size      int
		Positions []int64
		Rows      [][]float64
	}](t, "sinusoidal") {
		for i, p := range c.Positions {
			row := encoding.Sinusoidal{Size: c.Size, Halves: true}.At(p)
			alternate := encoding.Sinusoidal{Size: c.Size}.At(p)
			for channel, want := range c.Rows[i] {
				what := fmt.Sprintf("size %d, position %d, channel %d", c.Size, p, channel)
				near(t, what, row[channel], want, unit32)
				other := 2 * (channel % (c.Size / 2))
				if channel >= c.Size/2 {
					other++
				}
				near(t, what+", alternating", alternate[other], want, unit32)
			}
		}
	}
}

func TestLearned(t *testing.T) {
	for _, c := range golden[struct {
		Table     [][]float64
		Positions []int64
		Rows      [][]float64
	}](t, "learned") {
		l := encoding.Learned{Table: c.Table, Offset: 2}
		for i, p := range c.Positions {
			row, err := l.At(p)
			if err != nil || !slices.Equal(row, c.Rows[i]) {
				t.Errorf("position %d: %v %v, want %v", p, row, err, c.Rows[i])
			}
		}
		for _, p := range []int64{-1, int64(len(c.Table)) - 2} {
			if _, err := l.At(p); err == nil {
				t.Errorf("position %d of %d is in the table", p, len(c.Table)-2)
			}
		}
	}
}
