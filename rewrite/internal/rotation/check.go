package rotation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// maxRotated is the largest number of results for one vector in one call. All positions
// of a table with 131,072 rows, or of a model with many heads, would take gigabytes, here
// and in the process that evaluates.
const maxRotated = 512 << 10

// together returns how many positions are evaluated in one call.
func (r *Rotator) together() int {
	return int(min(max(maxRotated/(r.To.Heads*r.To.Channels), 16), 512))
}

// verify compares the fit with the graph's rotation at every position up to 4095 and at
// some beyond. At a table it compares every row, so that one wrong entry is seen. It also
// compares with many cached tokens, on which frequencies and factors may depend.
func (r *Rotator) verify(ctx context.Context, fit *Matrix, limit int64) error {
	var positions []int64
	for p := int64(0); p < min(4096, limit+1); p++ {
		positions = append(positions, p)
	}
	for _, p := range []int64{4097, 5003, 8191, 10007, 16383, 32771, 50021, 65535, 99991, 131071} {
		if p <= limit {
			positions = append(positions, p)
		}
	}
	if limit < r.top() && limit >= 4096 {
		// A table: every row is compared.
		for p := int64(4096); p <= limit; p++ {
			positions = append(positions, p)
		}
	}
	for some := range slices.Chunk(positions, r.together()) {
		if err := r.compare(ctx, fit, some); err != nil {
			return err
		}
	}
	if r.Position == nil || !r.Loaded.Table.Past {
		return nil
	}
	for _, past := range []int64{1, 4097, 20011, 131071} {
		past = r.Loaded.Table.Within(dim.Point{P: past}).P
		r.past = past
		if err := r.compare(ctx, fit, []int64{min(past, limit), min(3, limit)}); err != nil {
			return fmt.Errorf("with %d cached tokens %w", past, err)
		}
	}
	return nil
}

// rounding returns the error that 16 bits may add to a product with a cosine or sine:
// with strict, of the roundings of this product; otherwise, of two roundings of the
// largest product there is.
func (r *Rotator) rounding(product, largest float64) float64 {
	p := r.Precision
	switch {
	case p == rope.Float32:
		return 0
	case r.strict:
		allowed := p.Spacing(product)
		if fraction, _ := math.Frexp(largest); fraction != 0.5 || r.factors != nil {
			allowed += p.Epsilon() * math.Abs(product) // a factor that is no power of two rounds once more
		}
		return allowed
	}
	return 2 * p.Epsilon() * largest
}

// angle returns the angle p·ω, in radians, as the graph rounds it.
func (r *Rotator) angle(p int64, omega float64) float64 {
	if r.Angles != rope.Float32 {
		return r.Angles.Round(float64(p) * omega)
	}
	return float64(float32(p) * float32(omega))
}

// PairAt returns the two channels of a head that make pair x.
func PairAt(e rope.Encoding, x int) (int, int) {
	if e.Layout == rope.Interleaved {
		return e.Offset + 2*x, e.Offset + 2*x + 1
	}
	return e.Offset + x, e.Offset + x + len(e.Frequencies)
}

// compare returns an error if the graph's rotation is not that of the fit at these
// positions: for all pairs at once, with the first and the second channel of each as 1.
func (r *Rotator) compare(ctx context.Context, fit *Matrix, positions []int64) error {
	d := int(r.In.Channels)
	e := fit.Encoding
	n := len(e.Frequencies)
	probes := [][]float32{make([]float32, d), make([]float32, d)}
	rotated := make([]bool, d)
	for x := range n {
		a, b := PairAt(e, x)
		probes[0][a], probes[1][b] = 1, 1
		rotated[a], rotated[b] = true, true
	}
	for c := range d {
		if !rotated[c] {
			probes[0][c], probes[1][c] = 1, 1
		}
	}
	y, err := r.apply(ctx, probes, positions)
	if err != nil {
		return eval.NotRun{Why: err}
	}
	gain := e.EffectiveGain() * fit.Factor
	type turn struct{ cos, sin, angleError float64 }
	turns := make([]turn, n) // of the pairs, at one position
	for i, p := range positions {
		for x, omega := range e.Frequencies {
			at := p
			if e.Axes != nil {
				at = r.onAxis(int64(e.Axes[x]), p)
			}
			sin, cos := math.Sincos(r.angle(at, omega))
			turns[x] = turn{gain * cos, gain * sin, gain * (8*ir.Float32eps + 1.2e-7*float64(at)*math.Abs(omega))}
		}
		for h := range y[0] {
			first, second := y[0][h][i], y[1][h][i]
			for x, omega := range e.Frequencies {
				t := turns[x]
				a, b := PairAt(e, x)
				for _, v := range [4][2]float64{{first[a], t.cos}, {first[b], t.sin}, {second[a], -t.sin}, {second[b], t.cos}} {
					if math.IsNaN(v[0]) {
						return NotANumber{p}
					}
					if !(math.Abs(v[0]-v[1]) <= t.angleError+r.rounding(v[1], gain)) {
						return fmt.Errorf("at position %d, head %d, pair %d (ω = %g) the rotation gives %g, expected %g", p, h, x, omega, v[0], v[1])
					}
				}
			}
			for c := range d {
				if !rotated[c] && !(math.Abs(y[0][h][i][c]-fit.Factor) <= 8*ir.Float32eps*math.Abs(fit.Factor)) {
					return fmt.Errorf("at position %d channel %d, which is not rotated, is multiplied by %g, expected %g", p, c, y[0][h][i][c], fit.Factor)
				}
			}
		}
	}
	return nil
}

// SmallCalls compares a rotation that was measured with every call of few tokens, and returns how many there are. r
// evaluates the graph itself, without tables. Frequencies that change with the length of a call do so beyond
// trained tokens.
func (r *Rotator) SmallCalls(ctx context.Context, fit *Matrix, trained int64) (calls int64, err error) {
	own := *r
	r = &own
	r.order, r.factors, r.Angles = fit.Order, fit.Factors, fit.computed
	for pt := range dim.SmallCalls {
		pt.B = 2
		if pt.P > 0 && !r.Loaded.Table.Past || r.Loaded.Table.Within(pt) != pt {
			continue
		}
		r.past = pt.P
		for _, first := range r.firsts(pt, fit.Limit) {
			positions := make([]int64, pt.L)
			for i := range positions {
				positions[i] = first + int64(i)
			}
			if err := r.compare(ctx, fit.in(positions, trained), positions); err != nil {
				return calls, fmt.Errorf("in a call of %d tokens after %d cached ones, %w", pt.L, pt.P, err)
			}
			calls++
		}
	}
	return calls, nil
}

// firsts are the first positions with which a call is tried: the number of cached tokens and, where an input tells
// positions, another number.
func (r *Rotator) firsts(pt dim.Point, limit int64) []int64 {
	list := []int64{pt.P}
	if r.Position != nil {
		list = append(list, []int64{0, 1, 5, 1000}[(pt.L+pt.P)%4])
	}
	for len(list) > 0 && list[len(list)-1]+pt.L-1 > limit {
		list = list[:len(list)-1]
	}
	return list
}

// in is the rotation of a call with these positions.
func (m *Matrix) in(positions []int64, trained int64) *Matrix {
	l := m.Encoding.LengthDependent
	if l.Long == nil || positions[len(positions)-1]+1 <= trained {
		return m
	}
	long := *m
	long.Encoding.Frequencies = l.Long
	return &long
}
