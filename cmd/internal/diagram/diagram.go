package diagram

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Named is an attention with a name for a legend.
type Named struct {
	Name string
	rope.Attention
	XPos encoding.XPos // a decay of each pair by distance, for Decay; the zero value is none
}

// errNoRotation is what figures of a rotation say of an attention without one.
var errNoRotation = errors.New("the attention has no rotation, so there is nothing to draw; plot bias draws what it adds to scores by distance, if it does")

// Wavelengths draws how many tokens each pair of channels takes for one turn, 2π divided by its
// frequency, for some attention layers, against the length that the model was trained on (0 leaves that
// out). A pair that does not turn is left out. Frequencies that depend on the length are those of
// the longest, context.
func Wavelengths(list []Named, trained, context int64) (figure.Lines, error) {
	f := figure.Lines{Title: "Wavelength of each channel pair", XLabel: "channel pair", YLabel: "tokens per turn", LogY: true, TokensY: true}
	for _, a := range list {
		s := figure.Series{Name: a.Name}
		for i, omega := range a.Encoding.At(context).Frequencies {
			if omega != 0 {
				s.X, s.Y = append(s.X, float64(i)), append(s.Y, 2*math.Pi/math.Abs(omega))
			}
		}
		if len(s.X) == 0 {
			return f, fmt.Errorf("%s: %w", a.Name, errNoRotation)
		}
		f.Series = append(f.Series, s)
	}
	if trained > 0 {
		f.Marks = []figure.Mark{{Name: "trained length " + figure.Tokens(float64(trained)), Y: float64(trained)}}
	}
	return f, nil
}

// cells is how many rows and columns a matrix has at most.
const cells = 256

// Positions draws at which distance the rotation sees each key of length tokens, hidden keys left
// out: the relative-position matrix, as in An et al., "Why Does the Effective Context Length of
// LLMs Fall Short?" (2024), figure 4.
func Positions(a rope.Attention, length int) (figure.Matrix, error) {
	m := figure.Matrix{Title: "Distance at which a query sees a key", XLabel: "key", YLabel: "query", Length: float64(length)}
	see, err := ref.Sight(a, nil, length)
	if err != nil {
		return m, err
	}
	m.Values = sampled(length, func(query, key int) float64 {
		if distance, visible := see(query, key); visible {
			return distance
		}
		return math.NaN()
	})
	return m, nil
}

// Visibility draws who sees whom: a class for the tokens of the query's own document, of the
// anchor, of other documents, and of readers. documents are the tokens' ids; nil are tokens of
// one document.
func Visibility(a rope.Attention, documents []int64, length int) (figure.Matrix, error) {
	m := figure.Matrix{Title: "Keys that a query sees", XLabel: "key", YLabel: "query", Length: float64(length)}
	see, err := ref.Sight(a, documents, length)
	if err != nil {
		return m, err
	}
	names := [...]string{"own document", "anchor", "other document", "reader"}
	class := func(query, key int) int {
		switch {
		case documents == nil:
			return 0
		case documents[key] == 0:
			return 1
		case documents[key] < 0:
			return 3
		case documents[key] != documents[query]:
			return 2
		}
		return 0
	}
	last := 0
	m.Values = sampled(length, func(query, key int) float64 {
		if _, visible := see(query, key); !visible {
			return math.NaN()
		}
		last = max(last, class(query, key))
		return float64(class(query, key))
	})
	if m.Classes = names[:last+1]; documents == nil {
		m.Classes = []string{"visible"}
	}
	return m, nil
}

// sampled is a matrix of length tokens by length, of which so many are taken as a picture shows.
func sampled(length int, value func(query, key int) float64) [][]float64 {
	n := min(length, cells)
	rows := make([][]float64, n)
	for i := range rows {
		for j := range n {
			rows[i] = append(rows[i], value(at(i, n, length), at(j, n, length)))
		}
	}
	return rows
}

// at is the token in the middle of one of n equal parts.
func at(part, n, length int) int { return (2*part + 1) * length / (2 * n) }
