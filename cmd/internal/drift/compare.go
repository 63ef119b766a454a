package drift

import (
	"errors"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Drift is how far one attention layer changes between two shifts of all positions,
// summed over its heads. L is the length, P the weights after softmax, A the products before
// it and without 1/√head_size. (Wang et al., arXiv:2411.13476, section 3.)
type Drift struct {
	Weights  float64 `json:"weights"`   // D: Σ_j 1/(L−j+1) Σ_i |P_ij − P'_ij|, keys j counted from 1
	FirstKey float64 `json:"first_key"` // D_logit: 1/L Σ_i |A_i1 − A'_i1|, of the first key
}

func (d *Drift) add(e Drift) {
	d.Weights += e.Weights
	d.FirstKey += e.FirstKey
}

// Detail is the drift of one layer, or the sum of several, before it is summed over tokens.
type Detail struct {
	Keys    []float64 // of each key j: 1/(L−j+1) Σ_i |P_ij − P'_ij|
	Queries []float64 // of each query i: |A_i1 − A'_i1|
}

// Drift sums over all tokens.
func (d Detail) Drift() (sum Drift) {
	for _, x := range d.Keys {
		sum.Weights += x
	}
	for _, x := range d.Queries {
		sum.FirstKey += x / float64(len(d.Queries))
	}
	return sum
}

// FirstKeyUpTo is D_logit of the first tokens alone. Where no query sees later keys, a shorter
// text gives the same.
func (d Detail) FirstKeyUpTo(length int) (sum float64) {
	for _, x := range d.Queries[:length] {
		sum += x / float64(length)
	}
	return sum
}

func (d *Detail) add(e Detail) {
	if d.Keys == nil {
		d.Keys, d.Queries = make([]float64, len(e.Keys)), make([]float64, len(e.Queries))
	}
	for i := range e.Keys {
		d.Keys[i] += e.Keys[i]
		d.Queries[i] += e.Queries[i]
	}
}

// Compare measures between two shifts of a problem of one row without a past.
func Compare(p ref.Problem, a, b Turned) (Drift, error) {
	if reason := Unfit(p); reason != "" {
		return Drift{}, errors.New(reason)
	}
	return details(p.Attention, p.Positions, a, b).Drift(), nil
}

// details compares the products of two sets of turned queries and keys, at as many positions.
func details(layer rope.Attention, positions []int64, a, b Turned) Detail {
	length := len(positions)
	first, second := make([]float64, length), make([]float64, length)
	d := Detail{make([]float64, length), make([]float64, length)}
	for h := range layer.Heads {
		kv := h / (layer.Heads / layer.KVHeads)
		for i := range length {
			query := (h*length + i) * layer.HeadSize
			from, to := seen(layer.Mask, i, length)
			for j := range length {
				if j > 0 && (j < from || j >= to) {
					continue
				}
				key := (kv*length + j) * layer.HeadSize
				first[j], second[j] = a.product(query, key, layer.HeadSize), b.product(query, key, layer.HeadSize)
			}
			d.Queries[i] += math.Abs(first[0] - second[0])
			weights(layer, h, positions[i], first[from:to])
			weights(layer, h, positions[i], second[from:to])
			for j := from; j < to; j++ {
				d.Keys[j] += math.Abs(first[j]-second[j]) / float64(length-j)
			}
		}
	}
	return d
}

// Unfit says why the drift of a problem is not measured; "" where it is.
func Unfit(p ref.Problem) string {
	a := p.Attention
	past := p.Past // a cache of fixed capacity has rows without tokens
	if len(p.Pasts) == 1 {
		past = p.Pasts[0]
	}
	switch {
	case a.Encoding.Axes != nil:
		return "its tokens have several positions, which cannot be shifted together"
	case a.QueryFactors != nil || a.KeyFactors != nil:
		return "its queries and keys are multiplied by weights after the rotation"
	case p.Batch != 1 || past > 0 || p.Length == 0 || len(p.Positions) != p.Length:
		return "one row of tokens without a past is measured"
	case len(a.Bands) > 1 || a.Chunk > 0 || a.Drawn.Range > 0:
		return "it has a position map, so its distances are not those of the positions"
	case a.Mask.Documents != rope.NoDocuments || a.Mask.Restart || a.Mask.Bias || a.Mask.FirstKeys > 0:
		return "its mask uses documents, first keys or the model's own bias"
	case a.Encoding.RotaryDim() == 0:
		return "it does not rotate queries and keys"
	}
	return ""
}

// seen is the range of keys that query i sees.
func seen(m rope.Mask, i, length int) (from, to int) {
	from, to = 0, length
	if m.Causal {
		to = i + 1
	}
	if m.Window > 0 {
		from, to = max(0, i-int(m.Window)+1), min(to, i+int(m.Window))
	}
	return from, to
}

// weights makes the softmax of products.
func weights(a rope.Attention, head int, position int64, x []float64) {
	factor := a.EffectiveScale() * a.Temperature.At(position)
	largest := math.Inf(-1)
	for j := range x {
		x[j] *= factor
		if a.Softcap > 0 {
			x[j] = a.Softcap * math.Tanh(x[j]/a.Softcap)
		}
		largest = max(largest, x[j])
	}
	var sum float64
	if a.Sinks != nil {
		sum = math.Exp(a.Sinks[head] - largest)
	}
	for j := range x {
		x[j] = math.Exp(x[j] - largest)
		sum += x[j]
	}
	for j := range x {
		x[j] /= sum
	}
}
