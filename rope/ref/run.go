package ref

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Run computes the attention in float64.
func Run(p Problem) (Result, error) { return run[float64](p) }

// RunFloat32 computes the attention in float32 throughout: inputs, cos and sin,
// scores and sums, one after the other. Only the angle is as in Run.
func RunFloat32(p Problem) (Result, error) { return run[float32](p) }

type float interface{ float32 | float64 }

func run[T float](p Problem) (Result, error) {
	if err := p.check(); err != nil {
		return Result{}, err
	}
	a, size := p.Attention, p.valueSize()
	result := Result{
		Output:       make([]float64, p.Batch*a.Heads*p.Length*size),
		PresentKey:   make([]float64, p.Batch*a.KVHeads*p.total()*a.HeadSize),
		PresentValue: make([]float64, p.Batch*a.KVHeads*p.total()*size),
		LogSumExp:    make([]float64, p.Batch*a.Heads*p.Length),
		Visible:      make([]int, p.Batch*p.Length),
	}
	for b := range p.Batch {
		var shift int64 // position − index; needed where a key's position is not given
		if len(p.bands()) > 1 || (a.Cache == rope.Raw && p.Past > 0) {
			var err error
			if shift, err = p.shift(b); err != nil {
				return Result{}, err
			}
		}
		for l := range p.Length {
			for j := range p.total() {
				if p.sees(b, p.Past+l, j) {
					result.Visible[b*p.Length+l]++
				}
			}
		}
		for kv := range a.KVHeads {
			group := head[T]{Problem: p, batch: b, kv: kv, shift: shift}
			group.load()
			row := b*a.KVHeads + kv
			copyOut(result.PresentKey[row*p.total()*a.HeadSize:], group.cached)
			copyOut(result.PresentValue[row*p.total()*size:], group.values)
			for h := kv * a.Heads / a.KVHeads; h < (kv+1)*a.Heads/a.KVHeads; h++ {
				for l := range p.Length {
					at := (b*a.Heads+h)*p.Length + l
					out := result.Output[at*size : (at+1)*size]
					result.LogSumExp[at] = group.attend(h, l, out)
				}
			}
		}
	}
	return result, nil
}

// head is one kv head of one batch row.
type head[T float] struct {
	Problem
	batch, kv int
	shift     int64

	cached [][]T   // [P + L][D], keys as the cache holds them
	keys   [][][]T // [band][P + L][D], keys as the band sees them
	values [][]T   // [P + L][V]
}

// load gathers past and new keys and values, and turns the keys.
func (g *head[T]) load() {
	a, row := g.Attention, g.batch*g.Attention.KVHeads+g.kv
	g.keys = make([][][]T, len(g.bands()))
	for j := range g.total() {
		var stored []T
		var value []T
		position := int64(j) + g.shift
		if j < g.Past {
			stored = vector[T](g.PastKey, row*g.Past+j, a.HeadSize)
			value = vector[T](g.PastValue, row*g.Past+j, g.valueSize())
		} else {
			l := j - g.Past
			position = g.position(g.batch, l)
			stored = vector[T](g.Key, row*g.Length+l, a.HeadSize)
			value = vector[T](g.Value, row*g.Length+l, g.valueSize())
			if a.Cache == rope.Rotated {
				stored = rotate(a.Encoding, stored, float64(position))
			}
		}
		g.cached = append(g.cached, stored)
		g.values = append(g.values, value)
		for b, band := range g.bands() {
			key := stored
			if a.Cache == rope.Raw {
				key = rotate(a.Encoding, stored, band.KeyScale*float64(position))
			}
			g.keys[b] = append(g.keys[b], key)
		}
	}
}

// attend computes one query's output and returns the log-sum-exp of its scores.
func (g *head[T]) attend(h, l int, out []float64) float64 {
	a, i := g.Attention, g.Past+l
	at := (g.batch*a.Heads+h)*g.Length + l
	raw := vector[T](g.Query, at, a.HeadSize)
	queries := make([][]T, len(g.bands())) // the query where each band sees it
	for b, band := range g.bands() {
		position := float64(g.position(g.batch, l))
		queries[b] = rotate(a.Encoding, raw, band.QueryScale*position+band.QueryOffset)
	}

	scores := make([]T, g.total())
	highest := T(math.Inf(-1))
	for j := range g.total() {
		scores[j] = T(math.Inf(-1))
		if !g.sees(g.batch, i, j) {
			continue
		}
		b := g.band(int64(i - j))
		score := T(a.EffectiveScale()) * dot(queries[b], g.keys[b][j])
		if g.Bias != nil {
			score += T(g.Bias[at*g.total()+j])
		}
		if a.Softcap != 0 {
			score = T(a.Softcap) * T(math.Tanh(float64(score/T(a.Softcap))))
		}
		scores[j] = score
		highest = max(highest, score)
	}
	if math.IsInf(float64(highest), -1) {
		return math.Inf(-1) // no key: zeros
	}

	var sum T
	weighted := make([]T, g.valueSize())
	for j, score := range scores {
		if math.IsInf(float64(score), -1) {
			continue
		}
		weight := T(math.Exp(float64(score - highest)))
		sum += weight
		for x, v := range g.values[j] {
			weighted[x] += weight * v
		}
	}
	for x := range out {
		out[x] = float64(weighted[x] / sum)
	}
	return float64(highest + T(math.Log(float64(sum))))
}

// rotate returns R(position)·x.
func rotate[T float](e rope.Encoding, x []T, position float64) []T {
	turned := append([]T(nil), x...)
	for pair, omega := range e.Frequencies {
		angle := position * omega
		if !e.ExactAngles {
			angle = float64(float32(position) * float32(omega))
		}
		cos, sin := T(e.EffectiveGain()*math.Cos(angle)), T(e.EffectiveGain()*math.Sin(angle))
		first, second := e.Offset+pair, e.Offset+pair+len(e.Frequencies)
		if e.Layout == rope.Interleaved {
			first, second = e.Offset+2*pair, e.Offset+2*pair+1
		}
		turned[first] = x[first]*cos - x[second]*sin
		turned[second] = x[second]*cos + x[first]*sin
	}
	return turned
}

func dot[T float](x, y []T) T {
	var sum T
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// vector returns row number row of a matrix with the given row size.
func vector[T float](data []float64, row, size int) []T {
	v := make([]T, size)
	for i := range v {
		v[i] = T(data[row*size+i])
	}
	return v
}

func copyOut[T float](to []float64, rows [][]T) {
	i := 0
	for _, row := range rows {
		for _, x := range row {
			to[i] = float64(x)
			i++
		}
	}
}
