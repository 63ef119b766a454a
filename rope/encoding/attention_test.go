package encoding_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// attentionCase is a causal attention of two heads as transformers and NumPy compute it as a whole.
type attentionCase struct {
	Encoding  string
	Positions []int64
	Q, K, V   [][][]float64 // [head][token][channel]
	Out       [][][]float64

	Columns        []int64     // second positions
	Range, Seed    int64       // of drawn positions
	A, B           []float64   // vectors added to queries and keys
	Learned, Table [][]float64 // by bucket and head; by position and channel
	R1, R2         []float64   // by head

	X       [][]float64     // embeddings [token][channel], from which Q, K and V are projected
	Weights [][][][]float64 // [query, key, value][head][in][out]
}

// attending is what an encoding makes of an attention.
type attending struct {
	cached func(key []float64, token int) []float64 // what the cache holds of a key; nil is the key as it is
	score  func(head int, query, cached []float64, i, j int) float64
}

// run computes one head in calls of so many tokens: each adds its keys to the cache, and its queries
// read the cache.
func (a attending) run(head int, q, k, v [][]float64, calls ...int) (out [][]float64) {
	var cache [][]float64
	for _, n := range calls {
		for token := len(cache); n > 0; n-- {
			key := k[token]
			if a.cached != nil {
				key = a.cached(key, token)
			}
			cache = append(cache, key)
			token++
		}
		for i := len(out); i < len(cache); i++ {
			var weights []float64
			for j := range i + 1 {
				weights = append(weights, a.score(head, q[i], cache[j], i, j))
			}
			largest, sum := slices.Max(weights), 0.0
			row := make([]float64, len(v[0]))
			for j, s := range weights {
				w := math.Exp(s - largest)
				sum += w
				for c := range row {
					row[c] += w * v[j][c]
				}
			}
			for c := range row {
				row[c] /= sum
			}
			out = append(out, row)
		}
	}
	return out
}

func product(x, y []float64) (sum float64) {
	for i := range x {
		sum += x[i] * y[i]
	}
	return sum
}

// scaled is the score of vectors that are used as they are.
func scaled(_ int, q, k []float64, _, _ int) float64 {
	return product(q, k) / math.Sqrt(float64(len(q)))
}

// biased adds to the scaled score what a head has for the distance.
func (c attentionCase) biased(bias func(head int, distance int64) float64) attending {
	return attending{score: func(head int, q, k []float64, i, j int) float64 {
		return scaled(head, q, k, i, j) + bias(head, c.Positions[i]-c.Positions[j])
	}}
}

// turned rotates queries and keys at the positions of a token.
func turned(e rope.Encoding, positions func(token int) []float64) attending {
	return attending{
		cached: func(key []float64, token int) []float64 { return ref.Rotate(e, key, positions(token)...) },
		score: func(head int, q, k []float64, i, j int) float64 {
			return scaled(head, ref.Rotate(e, q, positions(i)...), k, i, j)
		},
	}
}

// attending is how the encoding of the case takes part.
func (c attentionCase) attending(t *testing.T) attending {
	size := len(c.Q[0][0])
	at := func(token int) []float64 { return []float64{float64(c.Positions[token])} }
	switch c.Encoding {
	case "none", "sinusoidal", "learned absolute":
		return attending{score: scaled}
	case "RoPE":
		return turned(rotation(size), at)
	case "randomized positions":
		drawn := rope.Drawn{Range: c.Range, Seed: c.Seed}.Positions(len(c.Positions))
		return turned(rotation(size), func(token int) []float64 { return []float64{float64(drawn[token])} })
	case "2-D rotation":
		e := encoding.Rotation2D{Size: size, Layout: rope.Interleaved}.Encoding()
		return turned(e, func(token int) []float64 { return []float64{float64(c.Positions[token]), float64(c.Columns[token])} })
	case "RoPE with bias":
		r := encoding.RoPEBias{Rotation: rotation(size), Query: c.A, Key: c.B}
		return attending{score: func(_ int, q, k []float64, i, j int) float64 {
			return r.Score(q, k, c.Positions[i], c.Positions[j]) / math.Sqrt(float64(size))
		}}
	case "xPos":
		x := encoding.XPos{Pairs: size / 2}
		const middle = 65536
		decayed := func(vector []float64, token int, ofQuery bool) []float64 {
			out := ref.Rotate(rotation(size), vector, at(token)...)
			factors, ofKey := x.Factors(c.Positions[token], middle)
			if !ofQuery {
				factors = ofKey
			}
			for i := range out {
				out[i] *= factors[i/2]
			}
			return out
		}
		return attending{
			cached: func(key []float64, token int) []float64 { return decayed(key, token, false) },
			score:  func(head int, q, k []float64, i, j int) float64 { return scaled(head, decayed(q, i, true), k, i, j) },
		}
	case "ALiBi":
		slopes := encoding.Slopes(len(c.Q))
		return c.biased(func(head int, d int64) float64 { return encoding.ALiBi{Slope: slopes[head]}.Bias(float64(d)) })
	case "T5's buckets":
		learned := make([][]float64, len(c.Q)) // by head
		for _, row := range c.Learned {
			for head, b := range row {
				learned[head] = append(learned[head], b)
			}
		}
		return attending{score: func(head int, q, k []float64, i, j int) float64 { // T5 does not divide
			return product(q, k) + encoding.T5{}.Biases(learned[head])(c.Positions[i]-c.Positions[j])
		}}
	case "KERPLE, logarithmic":
		return c.biased(func(head int, d int64) float64 {
			return encoding.KERPLELog{R1: c.R1[head], R2: c.R2[head]}.Bias(float64(d)) / math.Sqrt(float64(size))
		})
	case "KERPLE, power":
		return c.biased(func(head int, d int64) float64 {
			return encoding.KERPLEPower{R1: c.R1[head], R2: c.R2[head]}.Bias(float64(d)) / math.Sqrt(float64(size))
		})
	case "Sandwich":
		factors := encoding.SandwichFactors(len(c.Q))
		return c.biased(func(head int, d int64) float64 { return encoding.Sandwich{Factor: factors[head]}.Bias(float64(d)) })
	}
	t.Fatalf("no attention with %q", c.Encoding)
	return attending{}
}

// project makes queries, keys and values of embeddings with the row of each position added.
func (c *attentionCase) project(t *testing.T) {
	row := encoding.Sinusoidal{Size: len(c.X[0])}.At
	if c.Table != nil {
		row = func(position int64) []float64 {
			r, err := encoding.Learned{Table: c.Table, Offset: 2}.At(position)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	for kind, into := range []*[][][]float64{&c.Q, &c.K, &c.V} {
		*into = nil
		for _, weights := range c.Weights[kind] {
			var tokens [][]float64
			for token, x := range c.X {
				out := make([]float64, len(weights[0]))
				for i, r := range row(c.Positions[token]) {
					for o := range out {
						out[o] += (x[i] + r) * weights[i][o]
					}
				}
				tokens = append(tokens, out)
			}
			*into = append(*into, tokens)
		}
	}
}

// bound is how far a float64 computation may be from another one: scores are sums of a few terms,
// whose angles and biases have the error of a number as large as the farthest position.
func (c attentionCase) bound() float64 {
	largest := func(heads [][][]float64) (length float64) {
		for _, x := range slices.Concat(heads...) {
			length = max(length, math.Sqrt(product(x, x)))
		}
		return length
	}
	size := float64(len(c.Q[0][0]))
	far := float64(slices.Max(append(slices.Clone(c.Positions), c.Range)))
	return 4 * unit64 * (size + far) * (1 + largest(c.Q)*largest(c.K)) * largest(c.V)
}

// TestAttention: with each encoding, attention in one call, in two, and token by token with a cache
// gives what an independent implementation gives as a whole.
func TestAttention(t *testing.T) {
	cases := golden[attentionCase](t, "attention")
	for d := range encoding.All() {
		if !slices.ContainsFunc(cases, func(c attentionCase) bool { return c.Encoding == d.Name }) {
			t.Errorf("there is no attention with %s", d.Name)
		}
	}
	for _, c := range cases {
		t.Run(c.Encoding, func(t *testing.T) {
			if c.X != nil {
				c.project(t)
			}
			n := len(c.Positions)
			bound := c.bound()
			for _, calls := range [][]int{{n}, {3, n - 3}, slices.Repeat([]int{1}, n)} {
				for head := range c.Q {
					var got [][]float64
					if c.Encoding == "linear attention with rotation" {
						got = linear(c, head, calls)
					} else {
						got = c.attending(t).run(head, c.Q[head], c.K[head], c.V[head], calls...)
					}
					for token, want := range c.Out[head] {
						for channel := range want {
							near(t, fmt.Sprintf("%d calls, head %d, token %d", len(calls), head, token), got[token][channel], want[channel], bound)
						}
					}
				}
			}
		})
	}
}

// linear runs linear attention on all tokens so far in each call, and keeps the new ones' outputs.
func linear(c attentionCase, head int, calls []int) (out [][]float64) {
	l := encoding.LinearAttention{Rotation: rotation(len(c.Q[0][0])), Causal: true}
	for _, n := range calls {
		end := len(out) + n
		out = append(out, l.Run(c.Q[head][:end], c.K[head][:end], c.V[head][:end])[len(out):]...)
	}
	return out
}
