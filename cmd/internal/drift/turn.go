package drift

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Arithmetic says how rotated queries and keys are rounded and multiplied.
type Arithmetic string

const (
	Float64  Arithmetic = "float64"  // all in float64: what is left is no matter of rounding
	Float32  Arithmetic = "float32"  // rotated, multiplied and added up in float32
	BFloat16 Arithmetic = "bfloat16" // rotated in float32, rounded to the type, added up in float32
	Float16  Arithmetic = "float16"  // the same in float16
	Split    Arithmetic = "split"    // as the sum of two bfloat16 numbers; three products of these, added up in float32
)

// Arithmetics are those that a report shows.
func Arithmetics() []Arithmetic { return []Arithmetic{Float32, BFloat16, Float16, Split} }

// Turned are the queries and keys of a problem, rotated and rounded.
type Turned struct {
	arithmetic Arithmetic
	query, key vectors
}

// vectors have the numbers of query or key, row-major, in the parts of the arithmetic.
type vectors struct {
	wide      []float64 // of Float64
	high, low []float32 // of the others; low of Split
}

// Turn rotates the queries and keys of a problem to their positions, shifted by a number.
func Turn(p ref.Problem, arithmetic Arithmetic, shift int64) Turned {
	reach := int64(0)
	for _, at := range p.Positions {
		reach = max(reach, at+shift+1)
	}
	e := p.Attention.Encoding.At(reach)
	t := turner{encoding: e, arithmetic: arithmetic, size: p.Attention.HeadSize}
	for _, at := range p.Positions {
		t.positions = append(t.positions, float64(at+shift))
	}
	return Turned{arithmetic: arithmetic, query: t.all(p.Query), key: t.all(p.Key)}
}

type turner struct {
	encoding   rope.Encoding
	arithmetic Arithmetic
	size       int
	positions  []float64 // of one row
}

// all turns vectors [heads, length, size].
func (t turner) all(x []float64) (v vectors) {
	for at := 0; at < len(x); at += t.size {
		position := t.positions[at/t.size%len(t.positions)]
		if t.arithmetic == Float64 {
			v.wide = append(v.wide, t.wide(x[at:at+t.size], position)...)
			continue
		}
		for _, y := range t.narrow(x[at:at+t.size], position) {
			high, low := t.parts(y)
			v.high = append(v.high, high)
			if t.arithmetic == Split {
				v.low = append(v.low, low)
			}
		}
	}
	return v
}

// pair is the two channels that turn together.
func (t turner) pair(i int) (x, y int) {
	offset := t.encoding.Offset
	if t.encoding.Layout == rope.Interleaved {
		return offset + 2*i, offset + 2*i + 1
	}
	return offset + i, offset + i + len(t.encoding.Frequencies)
}

func (t turner) wide(from []float64, position float64) []float64 {
	out := append([]float64(nil), from...)
	gain := t.encoding.EffectiveGain()
	for i, frequency := range t.encoding.Frequencies {
		sin, cos := math.Sincos(position * frequency)
		x, y := t.pair(i)
		out[x], out[y] = gain*(from[x]*cos-from[y]*sin), gain*(from[y]*cos+from[x]*sin)
	}
	return out
}

// narrow turns in float32, by an angle that is rounded to float32 first unless the encoding
// keeps it.
func (t turner) narrow(from []float64, position float64) []float32 {
	out := make([]float32, len(from))
	for i, x := range from {
		out[i] = float32(x)
	}
	gain := t.encoding.EffectiveGain()
	for i, frequency := range t.encoding.Frequencies {
		s, c := math.Sincos(angle(t.encoding, position, frequency))
		sin, cos := float32(gain*s), float32(gain*c)
		x, y := t.pair(i)
		a, b := float32(from[x]), float32(from[y])
		out[x], out[y] = float32(a*cos)-float32(b*sin), float32(b*cos)+float32(a*sin)
	}
	return out
}

// angle is rounded to float32 unless the encoding keeps it.
func angle(e rope.Encoding, position, frequency float64) float64 {
	if e.ExactAngles {
		return position * frequency
	}
	return float64(float32(position * frequency))
}

// parts rounds a number to those that are multiplied.
func (t turner) parts(x float32) (high, low float32) {
	switch t.arithmetic {
	case BFloat16:
		return float32(rope.BFloat16.Round(float64(x))), 0
	case Float16:
		return float32(rope.Float16.Round(float64(x))), 0
	case Split:
		high = float32(rope.BFloat16.Round(float64(x)))
		return high, float32(rope.BFloat16.Round(float64(x - high)))
	}
	return x, 0
}

// product is that of a query and a key, by the places where their vectors begin.
func (t Turned) product(query, key, size int) float64 {
	if t.arithmetic == Float64 {
		var sum float64
		for i, x := range t.query.wide[query : query+size] {
			sum += x * t.key.wide[key+i]
		}
		return sum
	}
	sum := dot(t.query.high[query:query+size], t.key.high[key:key+size])
	if t.arithmetic == Split {
		sum += dot(t.query.high[query:query+size], t.key.low[key:key+size])
		sum += dot(t.query.low[query:query+size], t.key.high[key:key+size])
	}
	return float64(sum)
}

// dot multiplies and adds up in float32, one after the other.
func dot(a, b []float32) (sum float32) {
	b = b[:len(a)]
	for i, x := range a {
		sum += float32(x * b[i])
	}
	return sum
}
