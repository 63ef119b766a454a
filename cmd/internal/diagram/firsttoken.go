package diagram

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// LayerProblem is what one layer of a model read on some text (package capture).
type LayerProblem struct {
	Layer int
	ref.Problem
}

// FirstToken draws by layer how much weight the queries behind the first token give to it: the mean
// over queries, of the mean head and of the heads with most and least. Much of it makes the token an
// anchor, or an attention sink (Wang et al., AnchorAttention, 2024; Xiao et al., StreamingLLM, 2023).
func FirstToken(layers []LayerProblem) (figure.Lines, error) {
	f := figure.Lines{Title: "Weight on the first token, by layer", XLabel: "layer", YLabel: "mean weight"}
	mean, most, least := figure.Series{Name: "mean of heads"}, figure.Series{Name: "most of a head"}, figure.Series{Name: "least of a head"}
	for _, l := range layers {
		if l.Attention.Cross {
			continue
		}
		heads, err := onFirst(l.Problem)
		if err != nil {
			return f, fmt.Errorf("layer %d: %w", l.Layer, err)
		}
		sum, high, low := 0.0, math.Inf(-1), math.Inf(1)
		for _, w := range heads {
			sum, high, low = sum+w, max(high, w), min(low, w)
		}
		at := float64(l.Layer)
		mean.X, mean.Y = append(mean.X, at), append(mean.Y, sum/float64(len(heads)))
		most.X, most.Y = append(most.X, at), append(most.Y, high)
		least.X, least.Y = append(least.X, at), append(least.Y, low)
	}
	if len(mean.X) == 0 {
		return f, fmt.Errorf("the model has no layer whose attention can be drawn")
	}
	f.Series = []figure.Series{mean, most, least}
	return f, nil
}

// onFirst is the weight of each head on the first token. With a value of 1 at that token and 0
// elsewhere, the output is that weight.
func onFirst(p ref.Problem) ([]float64, error) {
	if p.Batch != 1 || p.Past > 0 || p.Length < 2 {
		return nil, fmt.Errorf("expected one row of two tokens or more, without a past")
	}
	n := p.Length
	p.ValueSize, p.Value = 1, make([]float64, p.Attention.KVHeads*n)
	for h := range p.Attention.KVHeads {
		p.Value[h*n] = 1
	}
	r, err := ref.Run(p)
	if err != nil {
		return nil, err
	}
	heads := make([]float64, p.Attention.Heads)
	for h := range heads {
		for _, w := range r.Output[h*n+1 : (h+1)*n] {
			heads[h] += w / float64(n-1)
		}
	}
	return heads, nil
}
