package prove

import (
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// The original may be more exact than its element type, by luck or because ONNX Runtime
// computes float16 in float32. The op is then compared with a plain implementation in
// this type, where that has the larger errors. For float16 it is the site with every
// node's result rounded. For float32 it is a rotation whose cosines, sines, products and
// sums are each rounded.

// plainRotation adds to the errors of the present keys those of a plain rotation of the
// trial's new keys. The keys before rotation are computed from the present ones, by
// rotating them back.
func (c *comparison) plainRotation(e *ResultErrors, t trial, feeds map[string]engine.Tensor, present engine.Tensor) {
	a := c.measured.Attention
	run := sizes(c.evaluator, t)
	rows := run.P + run.L
	if t.lengths != nil {
		rows = max(t.pt.P, t.lengths.Total)
	}
	if !slices.Equal(present.Dims, []int64{t.pt.B, int64(a.KVHeads), rows, int64(a.HeadSize)}) {
		return // the keys of latent attention, for example
	}
	encoding := a.Encoding.At(c.reach(t, feeds))
	position := c.positions(t, feeds)
	values := present.Values()
	for b := range t.pt.B {
		first, last := t.pt.P, t.tokens()
		if t.lengths != nil {
			first, last = t.lengths.Past(b, t.pt.L), t.lengths.Tokens[b]
		}
		for h := range int64(a.KVHeads) {
			for row := first; row < last; row++ {
				at := ((b*int64(a.KVHeads)+h)*rows + row) * int64(a.HeadSize)
				e.rotatePlain(encoding, a.KeyFactors, func(pair int) int64 { return position(b, row-first, row, pair) }, values[at:at+int64(a.HeadSize)])
			}
		}
	}
}

// plainlyRotated does the same for query or key of a rotation without its attention.
func (c *comparison) plainlyRotated(e *ResultErrors, kind int, t trial, feeds map[string]engine.Tensor, result engine.Tensor) {
	ly, factor := c.measured.Layouts.QueryOperand, c.measured.Rotated.Query
	if kind == rotatedKey {
		ly, factor = c.measured.Layouts.KeyCached, c.measured.Rotated.Key
	}
	encoding := c.measured.Attention.Encoding.At(c.reach(t, feeds))
	encoding.Gain = encoding.EffectiveGain() * factor
	position := c.positions(t, feeds)
	values, head := result.Values(), make([]float64, ly.Channels)
	for b := range t.pt.B {
		for h := range ly.Heads {
			for row := range t.pt.L {
				for i := range head {
					head[i] = values[ly.Index(result.Dims, b, h, row, int64(i))]
				}
				e.rotatePlain(encoding, nil, func(pair int) int64 { return position(b, row, t.pt.P+row, pair) }, head)
			}
		}
	}
}

// reach is how many positions the calls of a trial reach.
func (c *comparison) reach(t trial, feeds map[string]engine.Tensor) int64 {
	if p := c.measured.Position; p != nil {
		return int64(slices.Max(feeds[p.Name].Values())) + 1
	}
	return t.tokens()
}

// rotatePlain adds the errors of a plain rotation for one key [channels] whose pairs turn
// by these positions, and of its factors behind the rotation, nil for none. rotated is the
// key after an exact rotation, multiplied by them.
func (e *ResultErrors) rotatePlain(encoding rope.Encoding, factors []float64, position func(pair int) int64, rotated []float64) {
	gain := encoding.EffectiveGain()
	if factors != nil {
		rotated = slices.Clone(rotated)
		for c, w := range factors {
			rotated[c] /= w
		}
	}
	times := func(c int, exact float64, plain float32) float64 {
		if factors == nil {
			return float64(plain) - exact
		}
		return float64(plain*float32(factors[c])) - factors[c]*exact
	}
	for i, omega := range encoding.Frequencies {
		angle := float64(float32(position(i)) * float32(omega))
		if encoding.ExactAngles {
			angle = float64(position(i)) * omega
		}
		sin, cos := math.Sincos(angle)
		a, b := rotation.PairAt(encoding, i)
		x, y := float32((rotated[a]*cos+rotated[b]*sin)/gain), float32((rotated[b]*cos-rotated[a]*sin)/gain)
		c, s := float32(gain*cos), float32(gain*sin)
		// The conversions keep products from being fused with sums.
		first, second := float32(x*c)-float32(y*s), float32(y*c)+float32(x*s)
		e.addPlainError(times(a, gain*(float64(x)*cos-float64(y)*sin), first))
		e.addPlainError(times(b, gain*(float64(y)*cos+float64(x)*sin), second))
	}
}

// addPlain compares a result of a plain implementation with float64.
func (e *ResultErrors) addPlain(plain, double engine.Tensor, counts func(i int64) bool) {
	x, y := plain.Values(), double.Values()
	for i := range min(len(x), len(y)) {
		if counts(int64(i)) {
			e.addPlainError(x[i] - y[i])
		}
	}
}

// addPlainError adds the error of one element of a plain implementation.
func (e *ResultErrors) addPlainError(off float64) {
	e.plain = max(e.plain, math.Abs(off))
	e.plainSquares += off * off
}
