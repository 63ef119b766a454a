package diagram

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
)

// Biases are the encodings whose bias can be drawn. That of T5 is learned, so its buckets are.
var Biases = []string{"alibi", "t5", "kerple-log", "kerple-power", "sandwich"}

// PerHead says whether what Bias draws depends on the number of heads.
func PerHead(name string) bool { return name == "alibi" || name == "sandwich" }

const (
	biasPoints = 1024 // of a line, at most
	biasLines  = 8    // of a picture, at most
)

// Bias draws what an encoding, one of Biases, adds to a score by the distance from a query back
// to a key. Of many heads some are drawn, from the first to the last. The two numbers of KERPLE
// are learned for each head; the lines have a few examples.
func Bias(name string, heads, length int) (figure.Lines, error) {
	f := figure.Lines{XLabel: "tokens between query and key", YLabel: "added to the score", TokensX: true}
	line := func(name string, bias func(distance float64) float64) {
		s := figure.Series{Name: name}
		for d := 0; d < length; d += (length + biasPoints - 1) / biasPoints {
			s.X, s.Y = append(s.X, float64(d)), append(s.Y, bias(float64(d)))
		}
		f.Series = append(f.Series, s)
	}
	switch name {
	case "alibi":
		f.Title = fmt.Sprintf("ALiBi's bias by distance, %d heads", heads)
		slopes := encoding.Slopes(heads)
		for _, h := range spread(heads) {
			line(fmt.Sprintf("head %d, slope %.3g", h, slopes[h]), encoding.ALiBi{Slope: slopes[h]}.Bias)
		}
	case "t5":
		f.Title, f.YLabel = "T5's buckets by distance", "bucket"
		decoder, encoder := encoding.T5{}, encoding.T5{Bidirectional: true}
		line("decoder", func(d float64) float64 { return float64(decoder.Bucket(int64(d))) })
		line("encoder, earlier keys", func(d float64) float64 { return float64(encoder.Bucket(int64(d))) })
		line("encoder, later keys", func(d float64) float64 { return float64(encoder.Bucket(-int64(d))) })
	case "kerple-log":
		f.Title = "KERPLE's logarithmic bias by distance, r1 = 1"
		for _, r2 := range []float64{0.1, 1, 10} {
			line(fmt.Sprintf("r2 = %g", r2), encoding.KERPLELog{R1: 1, R2: r2}.Bias)
		}
	case "kerple-power":
		f.Title = "KERPLE's power bias by distance, r1 = 1"
		for _, r2 := range []float64{0.1, 0.3, 0.6} {
			line(fmt.Sprintf("r2 = %g", r2), encoding.KERPLEPower{R1: 1, R2: r2}.Bias)
		}
	case "sandwich":
		f.Title = fmt.Sprintf("Sandwich's bias by distance, %d heads", heads)
		factors := encoding.SandwichFactors(heads)
		for _, h := range spread(heads) {
			line(fmt.Sprintf("head %d, factor %.3g", h, factors[h]), encoding.Sandwich{Factor: factors[h]}.Bias)
		}
	default:
		return f, fmt.Errorf("the encoding %q has no bias to draw", short.Name(name))
	}
	return f, nil
}

// ModelBias draws what the heads of a model's layer add to their scores by distance, as it was
// measured. A model that sees later keys has them on the left, at distances below 0.
func ModelBias(layer int, a rope.Attention, length int) (figure.Lines, error) {
	f := figure.Lines{Title: fmt.Sprintf("Bias by distance, layer %d", layer), XLabel: "tokens from query back to key", YLabel: "added to the score", TokensX: true}
	if a.Distance.IsZero() {
		return f, fmt.Errorf("layer %d adds nothing to its scores by distance", layer)
	}
	first := 0
	if !a.Mask.Causal {
		first = 1 - length
	}
	for _, h := range spread(a.Heads) {
		s := figure.Series{Name: fmt.Sprintf("head %d", h)}
		if a.Distance.Slopes != nil {
			s.Name += fmt.Sprintf(", slope %.3g", a.Distance.Slopes[h])
		}
		for d := first; d < length; d += (length - first + biasPoints - 1) / biasPoints {
			s.X, s.Y = append(s.X, float64(d)), append(s.Y, a.Distance.Bias(h, int64(d)))
		}
		f.Series = append(f.Series, s)
	}
	return f, nil
}

// spread are the heads that are drawn.
func spread(heads int) (list []int) {
	if heads <= biasLines {
		for h := range heads {
			list = append(list, h)
		}
		return list
	}
	for i := range biasLines {
		list = append(list, i*(heads-1)/(biasLines-1))
	}
	return list
}
