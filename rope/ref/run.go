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
	p.widest = p.width()
	p.Attention.Encoding = p.Attention.Encoding.At(p.Reach())
	for b := range p.Batch {
		p.firstKeysEnds = append(p.firstKeysEnds, p.firstKeysEnd(b))
	}
	a, size := p.Attention, p.valueSize()
	result := Result{
		Output:       make([]float64, p.Batch*a.Heads*p.Length*size),
		PresentKey:   make([]float64, p.Batch*a.KVHeads*p.presentRows()*a.HeadSize),
		PresentValue: make([]float64, p.Batch*a.KVHeads*p.presentRows()*size),
		LogSumExp:    make([]float64, p.Batch*a.Heads*p.Length),
		Visible:      make([]int, p.Batch*p.Length),
	}
	for b := range p.Batch {
		var shift int64 // position − index; needed where a key's position is not given
		if len(p.bands()) > 1 || a.Chunk > 0 || (a.Cache == rope.Raw && p.past(b) > 0) {
			var err error
			if shift, err = p.shift(b); err != nil {
				return Result{}, err
			}
		}
		for l := range p.Length {
			for j := range p.total(b) {
				if p.sees(b, p.past(b)+l, j) {
					result.Visible[b*p.Length+l]++
				}
			}
		}
		for kv := range a.KVHeads {
			group := head[T]{Problem: p, batch: b, kv: kv, shift: shift}
			group.load()
			row := b*a.KVHeads + kv
			fill(result.PresentKey, p.PastKey, row, p.presentRows(), p.Past, a.HeadSize, group.cached)
			fill(result.PresentValue, p.PastValue, row, p.presentRows(), p.Past, size, group.values)
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

	cached [][]T   // [past + N][D], keys as the cache holds them
	keys   [][][]T // [band][past + N][D], keys as the band sees them
	values [][]T   // [past + N][V]
}

// load gathers past and new keys and values, and turns the keys.
func (g *head[T]) load() {
	a, row := g.Attention, g.batch*g.Attention.KVHeads+g.kv
	g.keys = make([][][]T, len(g.bands()))
	past := g.past(g.batch)
	for j := range g.total(g.batch) {
		var cached []T
		var value []T
		position := int64(j) + g.shift
		if j < past {
			if g.restarts(g.batch, j) {
				position = g.restarted(g.batch, j)
			}
			cached = vector[T](g.PastKey, row*g.Past+j, a.HeadSize)
			value = vector[T](g.PastValue, row*g.Past+j, g.valueSize())
		} else {
			l := j - past
			position = g.position(g.batch, l)
			cached = vector[T](g.Key, row*g.newKeys()+l, a.HeadSize)
			value = vector[T](g.Value, row*g.newKeys()+l, g.valueSize())
			if a.Cache == rope.Rotated {
				cached = times(a.KeyFactors, g.turned(cached, l, float64(position)))
			}
		}
		if g.HeldKey != nil {
			cached = vector[T](g.HeldKey, row*g.presentRows()+j, a.HeadSize)
		}
		if g.HeldValue != nil {
			value = vector[T](g.HeldValue, row*g.presentRows()+j, g.valueSize())
		}
		g.cached = append(g.cached, cached)
		g.values = append(g.values, value)
		for b, band := range g.bands() {
			key := cached
			if a.Cache == rope.Raw {
				key = times(a.KeyFactors, rotate(a.Encoding, cached, g.keyAt(band, position)))
			}
			g.keys[b] = append(g.keys[b], key)
		}
	}
}

// attend computes one query's output and returns the log-sum-exp of its scores.
func (g *head[T]) attend(h, l int, out []float64) float64 {
	a, i := g.Attention, g.past(g.batch)+l
	at := (g.batch*a.Heads+h)*g.Length + l
	raw := vector[T](g.Query, at, a.HeadSize)
	queries := make([][]T, len(g.bands())) // the query where each band sees it
	for b, band := range g.bands() {
		queries[b] = times(a.QueryFactors, g.turned(raw, l, g.queryAt(band, g.position(g.batch, l))))
	}

	temperature := T(a.Temperature.At(max(0, g.position(g.batch, l))))
	width := g.width()
	scores := make([]T, g.total(g.batch))
	highest := T(math.Inf(-1))
	for j := range scores {
		scores[j] = T(math.Inf(-1))
		if !g.sees(g.batch, i, j) {
			continue
		}
		b := g.band(i, j, g.shift)
		score := T(a.EffectiveScale()) * temperature * dot(queries[b], g.keys[b][j])
		if g.BiasBeforeSoftcap != nil {
			bias := g.BiasBeforeSoftcap[at*width+j]
			if math.IsInf(bias, -1) {
				continue // hidden, not −Softcap
			}
			score += T(bias)
		}
		if a.Softcap != 0 {
			score = T(a.Softcap) * T(math.Tanh(float64(score/T(a.Softcap))))
		}
		if g.Bias != nil {
			score += T(g.Bias[at*width+j])
		}
		if !a.Distance.IsZero() {
			score += T(a.Distance.Bias(h, g.distance(g.batch, i, j)))
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
	all := sum
	if a.Sinks != nil {
		all += T(math.Exp(a.Sinks[h] - float64(highest)))
	}
	for x := range out {
		out[x] = float64(weighted[x] / all)
	}
	return float64(highest + T(math.Log(float64(sum))))
}

// turned is x at the place of a new token: at a position, or, where tokens have several,
// at these.
func (g *head[T]) turned(x []T, place int, position float64) []T {
	if g.Attention.Encoding.Axes == nil {
		return rotate(g.Attention.Encoding, x, position)
	}
	return rotatePairs(g.Attention.Encoding, x, func(pair int) float64 { return float64(g.positionOf(g.batch, place, pair)) })
}

// times multiplies the channels by factors; nil are none.
func times[T float](factors []float64, x []T) []T {
	for i, factor := range factors {
		x[i] *= T(factor)
	}
	return x
}

// Rotate returns R(p)·x for one head: x turned at a position or, where tokens have several, at
// one for each axis of the encoding.
func Rotate(e rope.Encoding, x []float64, positions ...float64) []float64 {
	return rotatePairs(e, x, func(pair int) float64 {
		if e.Axes == nil {
			return positions[0]
		}
		return positions[e.Axes[pair]]
	})
}

// rotate returns R(position)·x.
func rotate[T float](e rope.Encoding, x []T, position float64) []T {
	return rotatePairs(e, x, func(int) float64 { return position })
}

// rotatePairs is rotate with a position for each pair.
func rotatePairs[T float](e rope.Encoding, x []T, positionOf func(pair int) float64) []T {
	rotated := append([]T(nil), x...)
	for pair, omega := range e.Frequencies {
		position := positionOf(pair)
		angle := position * omega
		if !e.ExactAngles {
			angle = float64(float32(position) * float32(omega))
		}
		cos, sin := T(e.EffectiveGain()*math.Cos(angle)), T(e.EffectiveGain()*math.Sin(angle))
		first, second := e.Offset+pair, e.Offset+pair+len(e.Frequencies)
		if e.Layout == rope.Interleaved {
			first, second = e.Offset+2*pair, e.Offset+2*pair+1
		}
		rotated[first] = x[first]*cos - x[second]*sin
		rotated[second] = x[second]*cos + x[first]*sin
	}
	return rotated
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

// fill writes the present buffer [rows, size] of one kv head: its keys or
// values, and behind them what the past's buffer [pastRows, size] holds.
func fill[T float](present, past []float64, head, rows, pastRows, size int, tokens [][]T) {
	to := present[head*rows*size : (head+1)*rows*size]
	copy(to, past[head*pastRows*size:(head+1)*pastRows*size])
	for j, token := range tokens {
		for x, v := range token {
			to[j*size+x] = float64(v)
		}
	}
}
