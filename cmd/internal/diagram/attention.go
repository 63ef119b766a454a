package diagram

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Attended draws how much weight a layer gives to keys by their distance, the mean over heads (or
// of one head) and over queries that have a key at that distance, from what the layer read on some
// text (package capture). Distances are gathered in steps that grow by an eighth.
func Attended(layer int, p ref.Problem, head int) (figure.Lines, error) {
	what := fmt.Sprintf("layer %d, mean over heads", layer)
	if head >= 0 {
		what = fmt.Sprintf("layer %d, head %d", layer, head)
	}
	f := figure.Lines{Title: "Attention by distance, " + what, XLabel: "tokens between query and key, and one more", YLabel: "mean weight", TokensX: true, LogX: true, LogY: true}
	if p.Batch != 1 || p.Past > 0 {
		return f, fmt.Errorf("expected one row without a past")
	}
	if head >= p.Attention.Heads {
		return f, fmt.Errorf("the layer has %d heads, from 0 on", p.Attention.Heads)
	}
	// Values that are 1 for one key and 0 for the others make the output the weights themselves.
	n := p.Length
	p.ValueSize = n
	p.Value = make([]float64, p.Attention.KVHeads*n*n)
	for i := range p.Attention.KVHeads * n {
		p.Value[i*n+i%n] = 1
	}
	r, err := ref.Run(p)
	if err != nil {
		return f, err
	}
	sums, counts := make([]float64, n), make([]float64, n)
	for h := range p.Attention.Heads {
		if head >= 0 && h != head {
			continue
		}
		for i := range n {
			for j := range i + 1 {
				sums[i-j] += r.Output[(h*n+i)*n+j]
				counts[i-j]++
			}
		}
	}
	s := figure.Series{Name: what}
	for from := 0; from < n; {
		to := min(max(from+1, from*9/8), n)
		sum, count := 0.0, 0.0
		for d := from; d < to; d++ {
			sum, count = sum+sums[d], count+counts[d]
		}
		if mean := sum / count; mean > 0 && !math.IsNaN(mean) {
			s.X, s.Y = append(s.X, float64(from+to-1)/2+1), append(s.Y, mean)
		}
		from = to
	}
	if len(s.X) == 0 {
		return f, fmt.Errorf("layer %d gives no key any weight", layer)
	}
	f.Series = []figure.Series{s}
	return f, nil
}
