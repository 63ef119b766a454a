package diagram

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Reach says how far the distances of an attention go, and how often its queries meet the largest.
type Reach struct {
	Name    string  `json:"name"`
	Largest int     `json:"largest"`
	Keys    float64 `json:"keys_per_query"` // at the largest distance, the mean
	Trained float64 `json:"trained"`        // the same in training: 0 for a distance that training does not have
}

// Trained draws how often a query meets each distance in training, and how often with some
// attention layers on a text of length tokens: the mean number of keys at that distance. The first line and
// the first reach are those of training. (An et al., "Why Does the Effective Context Length of LLMs
// Fall Short?", 2024, figure 1.)
func Trained(documents []int64, trained int, list []Named, length int) (figure.Lines, []Reach, error) {
	f := figure.Lines{Title: "How often a query meets each distance, in training and at " + figure.Tokens(float64(length)), XLabel: "distance that the rotation sees", YLabel: "mean number of keys", TokensX: true}
	seen := TrainedDistances(documents, trained)
	lines := [][]float64{seen}
	names := []string{"training"}
	for _, a := range list {
		met, err := Distances(a.Attention, length)
		if err != nil {
			return f, nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		lines, names = append(lines, met), append(names, a.Name)
	}
	var reaches []Reach
	for i, met := range lines {
		f.Series = append(f.Series, frequencyLine(names[i], met))
		r := Reach{Name: names[i], Largest: len(met) - 1, Keys: met[len(met)-1]}
		if r.Largest < len(seen) {
			r.Trained = seen[r.Largest]
		}
		reaches = append(reaches, r)
	}
	return f, reaches, nil
}

// linePoints is how many points a line of frequencies has at most.
const linePoints = 1024

// frequencyLine is a line whose points are means over steps of distances. It ends at 0 behind the
// largest distance.
func frequencyLine(name string, met []float64) figure.Series {
	s := figure.Series{Name: name}
	step := (len(met) + linePoints - 1) / linePoints
	for from := 0; from < len(met); from += step {
		to, sum := min(from+step, len(met)), 0.0
		for _, keys := range met[from:to] {
			sum += keys
		}
		s.X, s.Y = append(s.X, float64(from+to-1)/2), append(s.Y, sum/float64(to-from))
	}
	s.X, s.Y = append(s.X, float64(len(met))), append(s.Y, 0)
	return s
}

// shortest is the length of the shortest documents of Mix.
const shortest = 64

// Mix is a simple mix of training documents: one of the trained length, two of half of it, four of
// a quarter and so on, so that documents of each length have as many tokens.
func Mix(trained int) (documents []int64) {
	for n, count := trained, 1; n >= shortest || count == 1; n, count = n/2, 2*count {
		for range count {
			documents = append(documents, int64(n))
		}
	}
	return documents
}

// TrainedDistances are how many keys a query of a training text meets at each distance, the mean over
// queries, from distance 0 to the largest. Documents follow each other in rows of the trained length.
// One that does not fit is cut where the row ends, and queries see the earlier tokens of their
// own piece: a piece of n tokens has n − d pairs at distance d.
func TrainedDistances(documents []int64, trained int) []float64 {
	pieces := make([]float64, trained+1) // by number of tokens
	tokens, place := 0.0, int64(0)
	for _, n := range documents {
		tokens += float64(n)
		first := min(n, int64(trained)-place)
		pieces[first]++
		pieces[trained] += float64((n - first) / int64(trained))
		last := (n - first) % int64(trained)
		pieces[last]++
		place = (place + n) % int64(trained)
	}
	// Pairs at distance d are one for each piece and each token that it has beyond d.
	met := make([]float64, trained)
	largest, longer, pairs := 0, 0.0, 0.0
	for d := trained - 1; d >= 0; d-- {
		longer += pieces[d+1]
		pairs += longer
		met[d] = pairs / tokens
		if pairs > 0 {
			largest = max(largest, d)
		}
	}
	return met[:largest+1]
}

// mostLooks is how many pairs of a query and a key are looked at: seconds.
const mostLooks = 1 << 29

// Distances are how many keys a query meets at each distance that the rotation sees, the mean over
// the queries of a text of length tokens, from distance 0 to the largest. Keys that the mask hides
// are not met. Distances that are no whole numbers are rounded.
func Distances(a rope.Attention, length int) ([]float64, error) {
	switch {
	case len(a.Encoding.Frequencies) == 0:
		return nil, errNoRotation
	case !a.Mask.Causal:
		return nil, errors.New("the attention is bidirectional, and distances are counted for causal attention")
	case a.Drawn.Range > 0:
		return nil, errors.New("positions are drawn at random, so distances differ from text to text; plot decay draws what that does")
	}
	see, err := ref.Sight(a, nil, length)
	if err != nil {
		return nil, err
	}
	period := min(period(a), length)
	if looks := period * length; looks > mostLooks {
		return nil, fmt.Errorf("%d tokens are too many to count the distances of this method; give a --length of at most %d", length, int(math.Sqrt(mostLooks)))
	}
	var met []float64
	for query := length - period; query < length; query++ {
		for key := range query + 1 {
			distance, visible := see(query, key)
			if !visible {
				continue
			}
			d := int(math.Abs(math.Round(distance)))
			for d >= len(met) {
				met = append(met, 0)
			}
			// This query, and each a period before it that has a key so far back.
			met[d] += float64(key/period+1) / float64(length)
		}
	}
	return met, nil
}

// period is after how many tokens a query meets keys as far back at the same distances again.
func period(a rope.Attention) int {
	if a.Mask.FirstKeys > 0 {
		return math.MaxInt // keys of a place of their own
	}
	period := int64(max(a.Chunk, 1))
	for _, b := range a.Bands {
		if a.Chunk == 0 && b.Group > 1 {
			period = leastMultiple(period, b.Group)
		}
	}
	return int(period)
}

// leastMultiple is the least number that both divide.
func leastMultiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}
