package capture

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// The op's inputs, by their place (docs/ops.md).
const (
	query = iota
	key
	value
	pastKey
	pastValue
	positionIDs
	attentionMask
	attentionBias
	cacheLength
	documentIDs
	sinkLogits
	biasBeforeSoftcap
	totalLength
	pastKeyScale
	pastValueScale
	inputCount
)

// problem brings what an op read to the reference's form.
func problem(op rewrite.Op, t tap, out map[string]engine.Tensor) (ref.Problem, error) {
	var in [inputCount]engine.Tensor
	for i, name := range t.inputs {
		in[i] = out[name]
	}
	a := op.Attention
	q := in[query]
	if len(q.Dims) != 3 && len(q.Dims) != 4 {
		return ref.Problem{}, fmt.Errorf("its query has the shape %v; expected three or four dimensions", q.Dims)
	}
	a.HeadSize = size(q, a.Heads)
	p := ref.Problem{
		Batch: int(q.Dims[0]), Length: length(q), ValueSize: size(in[value], a.KVHeads),
		Query: heads(q, a.Heads), Key: heads(in[key], a.KVHeads), Value: heads(in[value], a.KVHeads),
	}
	if in[sinkLogits].Data != nil {
		a.Sinks = in[sinkLogits].Values()
	}
	p.Attention = a
	if past := in[pastKey]; past.Data != nil {
		p.Past = int(past.Dims[2])
		p.PastKey, p.PastValue = past.ScaledValues(in[pastKeyScale]), in[pastValue].ScaledValues(in[pastValueScale])
	}
	if a.Cross {
		p.Keys = length(in[key])
	}
	width := p.Past + length(in[key])
	if lengths := in[cacheLength]; lengths.Data != nil {
		width = 0
		for _, n := range lengths.Values() {
			p.Pasts = append(p.Pasts, int(n))
			width = max(width, int(n)+p.Length)
		}
		p.PresentRows = max(p.Past, width)
	}
	for _, positions := range byAxis(in[positionIDs]) {
		for _, id := range rows(positions, p.Batch, p.Length) {
			p.Positions = append(p.Positions, int64(id))
		}
	}
	if p.Positions == nil && !a.Cross {
		p.Positions = indices(p)
	}
	for _, m := range rows(in[attentionMask], p.Batch, width) {
		p.KeyMask = append(p.KeyMask, m != 0)
	}
	for _, id := range rows(in[documentIDs], p.Batch, width) {
		p.Documents = append(p.Documents, int64(id))
	}
	p.Bias = spread(in[attentionBias], p.Batch, a.Heads, p.Length, width)
	p.BiasBeforeSoftcap = spread(in[biasBeforeSoftcap], p.Batch, a.Heads, p.Length, width)
	return p, nil
}

// byAxis are positions [batch or 1, length], or of a tensor [axes, batch or 1, length] those
// of each axis; none of no tensor.
func byAxis(t engine.Tensor) (list []engine.Tensor) {
	switch {
	case t.Data == nil:
		return nil
	case len(t.Dims) == 2:
		return []engine.Tensor{t}
	}
	size := len(t.Data) / int(max(t.Dims[0], 1))
	for axis := range int(t.Dims[0]) {
		list = append(list, engine.Tensor{Type: t.Type, Dims: t.Dims[1:], Data: t.Data[axis*size : (axis+1)*size]})
	}
	return list
}

// indices are the positions of an op that is given none.
func indices(p ref.Problem) (positions []int64) {
	for b := range p.Batch {
		past := p.Past
		if p.Pasts != nil {
			past = p.Pasts[b]
		}
		for l := range p.Length {
			positions = append(positions, int64(past+l))
		}
	}
	return positions
}

// size is that of a head, of a tensor [batch, n, length, size] or [batch, length, n·size].
func size(t engine.Tensor, n int) int {
	if len(t.Dims) == 3 {
		return int(t.Dims[2]) / n
	}
	return int(t.Dims[3])
}

// length is the number of tokens of such a tensor.
func length(t engine.Tensor) int {
	return int(t.Dims[len(t.Dims)-2])
}

// heads returns a tensor of either shape as [batch, n, length, size].
func heads(t engine.Tensor, n int) []float64 {
	values := t.Values()
	if len(t.Dims) == 4 {
		return values
	}
	batch, length, size := int(t.Dims[0]), length(t), size(t, n)
	out := make([]float64, 0, len(values))
	for b := range batch {
		for h := range n {
			for l := range length {
				at := ((b*length+l)*n + h) * size
				out = append(out, values[at:at+size]...)
			}
		}
	}
	return out
}

// rows returns the first width columns of a tensor [batch or 1, at least width]; nil of none.
func rows(t engine.Tensor, batch, width int) (out []float64) {
	if t.Data == nil {
		return nil
	}
	values, columns := t.Values(), int(t.Dims[1])
	for b := range batch {
		row := b % int(t.Dims[0])
		out = append(out, values[row*columns:row*columns+width]...)
	}
	return out
}

// spread broadcasts a bias to [batch, heads, length, width]; nil of none. Of a wider one the
// first columns count.
func spread(t engine.Tensor, batch, heads, length, width int) []float64 {
	if t.Data == nil {
		return nil
	}
	dims := [4]int{1, 1, 1, 1}
	for i, d := range t.Dims {
		dims[4-len(t.Dims)+i] = int(d)
	}
	values := t.Values()
	at := func(i, axis int) int {
		if dims[axis] == 1 {
			return 0
		}
		return i
	}
	out := make([]float64, 0, batch*heads*length*width)
	for b := range batch {
		for h := range heads {
			for l := range length {
				row := ((at(b, 0)*dims[1]+at(h, 1))*dims[2] + at(l, 2)) * dims[3]
				for j := range width {
					out = append(out, values[row+at(j, 3)])
				}
			}
		}
	}
	return out
}
