package diagram

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Decays are the encodings whose decay by distance can be drawn without a model.
var Decays = []string{"rope", "none", "rotation-2d", "randomized", "rope-bias", "linear-attention", "xpos", "sinusoidal", "sandwich"}

// Decay draws by distance the mean, over the channel pairs, of |S_j| = |Σ_{i<j} e^{i m θ_i}|, which
// bounds the score of a query and a key at distance m (Su et al., RoFormer, 2021, section 3.4.3,
// equations 35 to 37), as a share of its value at distance 0. A map of positions moves the
// distance first, drawn positions give the mean over some queries, and xPos multiplies the term of
// each pair by its decay.
func Decay(list []Named, length int) (figure.Lines, error) {
	f := decayFigure("Upper bound of the score by distance")
	for _, a := range list {
		frequencies := a.Encoding.At(int64(length)).Frequencies
		if len(frequencies) == 0 {
			return f, fmt.Errorf("%s: %w", a.Name, errNoRotation)
		}
		share := func(distance float64) float64 { return bound(frequencies, a.XPos, distance) }
		byIndex, err := seen(a.Attention, length, share)
		if err != nil {
			return f, fmt.Errorf("%s: %w", a.Name, err)
		}
		whole := share(0)
		f.Series = append(f.Series, stepped(a.Name, length, func(d int) float64 { return byIndex(d) / whole }))
	}
	return f, nil
}

// DecayOf draws how an encoding, one of Decays, weakens with the distance, for so many rotated
// channels and a base: the upper bound of the score where the score is bounded by the rotation
// alone, and else what the encoding itself gives.
func DecayOf(name string, size int, base float64, length int) (figure.Lines, error) {
	plain := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: size, Mask: rope.Mask{Causal: true}, Encoding: rope.Encoding{Frequencies: encoding.Powers(size, base)}}
	rotary := Named{Name: "RoPE", Attention: plain}
	cosines := func(title string, frequencies []float64) (figure.Lines, error) {
		f := decayFigure(title)
		f.Series = []figure.Series{stepped(name, length, func(d int) float64 { return meanCosine(frequencies, float64(d)) })}
		return f, nil
	}
	bounds := func(what string, list ...Named) (figure.Lines, error) {
		f, err := Decay(append([]Named{rotary}, list...), length)
		f.Title = what + ": upper bound of the score by distance"
		return f, err
	}
	switch name {
	case "rope":
		return bounds("RoPE")
	case "none":
		f := decayFigure("Without positions, the score does not depend on distance")
		f.Series = []figure.Series{stepped(name, length, func(int) float64 { return 1 })}
		return f, nil
	case "rotation-2d":
		f, err := bounds("2-D rotation")
		f.XLabel = "patches between query and key"
		f.Series = append(f.Series, decay2D(size, base, length)...)
		return f, err
	case "randomized":
		var list []Named
		for _, times := range []int64{4, 16} {
			drawn := Named{Name: fmt.Sprintf("drawn from %d × the length", times), Attention: plain}
			drawn.Drawn = rope.Drawn{Range: times * int64(length)}
			list = append(list, drawn)
		}
		return bounds("Randomized positions", list...)
	case "rope-bias":
		return cosines("RoPE with bias: what two vectors of ones give one another", plain.Encoding.Frequencies)
	case "linear-attention":
		return cosines("Linear attention: weight of a key, all features 1", plain.Encoding.Frequencies)
	case "xpos":
		return bounds("xPos", Named{Name: "xPos", Attention: plain, XPos: encoding.XPos{Pairs: size / 2}})
	case "sinusoidal":
		return cosines("Sinusoidal: inner product of two positions by distance", plain.Encoding.Frequencies)
	case "sandwich":
		return cosines("Sandwich's bias by distance", encoding.Sandwich{}.Frequencies())
	}
	return figure.Lines{}, fmt.Errorf("the decay of %q cannot be drawn", short.Name(name))
}

// decay2D is the bound of Rotation2D for keys in the query's row, and on the diagonal.
func decay2D(size int, base float64, length int) (list []figure.Series) {
	e := encoding.Rotation2D{Size: size, Base: base}.Encoding()
	for _, line := range []struct {
		name  string
		steps [2]float64 // rows and columns per patch
	}{{"in the same row", [2]float64{0, 1}}, {"on the diagonal", [2]float64{1, 1}}} {
		turned := make([]float64, len(e.Frequencies))
		for i, omega := range e.Frequencies {
			turned[i] = omega * line.steps[e.Axes[i]]
		}
		whole := bound(turned, encoding.XPos{}, 0)
		list = append(list, stepped(line.name, length, func(d int) float64 { return bound(turned, encoding.XPos{}, float64(d)) / whole }))
	}
	return list
}

func decayFigure(title string) figure.Lines {
	return figure.Lines{Title: title, XLabel: "tokens between query and key", YLabel: "share of distance 0", TokensX: true, LogX: true}
}

// stepped is a line of what swings from token to token: each point is the mean of a step of
// distances, and steps grow by an eighth.
func stepped(name string, length int, share func(d int) float64) figure.Series {
	s := figure.Series{Name: name}
	for from := 1; from < length; {
		to := min(max(from+1, from*9/8), length)
		sum, count := 0.0, 0.0
		for d := from; d < to; d += max(1, (to-from)/cells) {
			sum, count = sum+share(d), count+1
		}
		s.X, s.Y = append(s.X, float64(from+to-1)/2), append(s.Y, sum/count)
		from = to
	}
	return s
}

// seen gives a function of the distance that the rotation sees by the number of tokens between
// query and key: of the last query or, for drawn positions, as the mean over some queries.
func seen(a rope.Attention, length int, of func(distance float64) float64) (func(d int) float64, error) {
	a.Mask = rope.Mask{Causal: true}
	if a.Drawn.Range == 0 {
		see, err := ref.Sight(a, nil, length)
		return func(d int) float64 {
			distance, _ := see(length-1, length-1-d)
			return of(distance)
		}, err
	}
	if a.Drawn.Range < int64(length) {
		return nil, fmt.Errorf("%d positions for %d tokens", a.Drawn.Range, length)
	}
	positions := a.Drawn.Positions(length)
	const queries = 16
	return func(d int) float64 {
		sum := 0.0
		for i := range queries {
			query := d + i*(length-1-d)/(queries-1)
			sum += of(float64(positions[query] - positions[query-d]))
		}
		return sum / queries
	}, nil
}

// bound is the mean of |S_j| at a distance.
func bound(frequencies []float64, x encoding.XPos, distance float64) float64 {
	var re, im, sum float64
	for pair, omega := range frequencies {
		sin, cos := math.Sincos(distance * omega)
		if x.Pairs > 0 {
			decay := x.Decay(pair, distance)
			sin, cos = sin*decay, cos*decay
		}
		re, im = re+cos, im+sin
		sum += math.Hypot(re, im)
	}
	return sum / float64(len(frequencies))
}

// meanCosine is the mean of cos(d·ω).
func meanCosine(frequencies []float64, distance float64) (mean float64) {
	for _, omega := range frequencies {
		mean += math.Cos(distance * omega)
	}
	return mean / float64(len(frequencies))
}
