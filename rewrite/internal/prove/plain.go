package prove

import (
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// An original may be more exact than its type asks for, by luck or because its
// runtime computes float16 in float32. What the op is held to is a plain
// implementation in the site's type, if that is off by more: of float16 the site
// itself with every node's result rounded; of float32 a rotation whose cosines,
// sines, products and sums are rounded one after the other.

// plainRotation adds to the errors of the present keys what a plain rotation is
// off by on the new keys of a trial. What it turns are the keys that come out,
// turned back.
func (c *comparison) plainRotation(e *ResultErrors, t trial, feeds map[string]engine.Tensor, present engine.Tensor) {
	a := c.lift.Attention
	rows := t.pt.P + t.pt.L
	if t.lengths != nil {
		rows = max(t.pt.P, t.lengths.Total)
	}
	if !slices.Equal(present.Dims, []int64{t.pt.B, int64(a.KVHeads), rows, int64(a.HeadSize)}) {
		return // latent keys, say
	}
	encoding := a.Encoding.At(t.tokens())
	position := c.positions(t, feeds)
	values := present.Values()
	for b := range t.pt.B {
		first, last := t.pt.P, rows
		if t.lengths != nil {
			first, last = t.lengths.Past(b, t.pt.L), t.lengths.Tokens[b]
		}
		for h := range int64(a.KVHeads) {
			for row := first; row < last; row++ {
				at := ((b*int64(a.KVHeads)+h)*rows + row) * int64(a.HeadSize)
				e.turnPlain(encoding, position(b, row-first, row), values[at:at+int64(a.HeadSize)])
			}
		}
	}
}

// positions returns where the token stands that is new in row b at a place, its
// index being given.
func (c *comparison) positions(t trial, feeds map[string]engine.Tensor) func(b, place, index int64) int64 {
	if c.lift.Position == nil {
		return func(_, _, index int64) int64 { return index }
	}
	values := feeds[c.lift.Position.Name].Values()
	return func(b, place, _ int64) int64 {
		return int64(values[(b*t.pt.L+place)%int64(len(values))])
	}
}

// turnPlain turns one key [channels] that stands at a position.
func (e *ResultErrors) turnPlain(encoding rope.Encoding, position int64, turned []float64) {
	gain := encoding.EffectiveGain()
	for i, omega := range encoding.Frequencies {
		sin, cos := math.Sincos(float64(float32(position) * float32(omega)))
		a, b := rotation.PairAt(encoding, i)
		x, y := float32((turned[a]*cos+turned[b]*sin)/gain), float32((turned[b]*cos-turned[a]*sin)/gain)
		c, s := float32(gain*cos), float32(gain*sin)
		// The conversions keep products from being fused with sums.
		first, second := float32(x*c)-float32(y*s), float32(y*c)+float32(x*s)
		e.notePlain(float64(first) - gain*(float64(x)*cos-float64(y)*sin))
		e.notePlain(float64(second) - gain*(float64(y)*cos+float64(x)*sin))
	}
}

// addPlain compares a result of a plain implementation with float64.
func (e *ResultErrors) addPlain(plain, double engine.Tensor, counts func(i int64) bool) {
	x, y := plain.Values(), double.Values()
	for i := range min(len(x), len(y)) {
		if counts(int64(i)) {
			e.notePlain(x[i] - y[i])
		}
	}
}

func (e *ResultErrors) notePlain(off float64) {
	e.plain = math.Max(e.plain, math.Abs(off))
	e.plainSquares += off * off
}
