package rotation

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rearranged returns the channel that each channel is made of at position 0, where all
// angles are 0; nil when all channels keep their places, or when one is made of several. (Exporters reorder interleaved pairs into halves before they rotate them.)
func rearranged(m [][][]response) []int64 {
	order := make([]int64, len(m))
	for i := range order {
		order[i] = -1
	}
	moved := false
	for in := range m {
		for out, v := range m[in][0][0] {
			if math.Abs(v) <= 1e-4 {
				continue
			}
			if order[out] >= 0 {
				return nil
			}
			order[out] = int64(in)
			moved = moved || in != out
		}
	}
	if !moved || slices.Contains(order, -1) {
		return nil
	}
	return order
}

// findPairs returns, for every channel, the one that it is rotated with, and the channel
// itself if it is not rotated. Results up to least count as zero.
func findPairs(m [][][]response, least float64) ([]int, error) {
	d := len(m)
	partner := make([]int, d)
	for in := range m {
		partner[in] = in
		largest := least
		for out := range d {
			if out == in {
				continue
			}
			size := 0.0
			for p := range m[in][0] {
				size = math.Max(size, math.Abs(m[in][0][p][out]))
			}
			if size > largest {
				largest, partner[in] = size, out
			}
		}
	}
	for a, b := range partner {
		if partner[b] != a {
			return nil, fmt.Errorf("channel %d mixes with %d, which mixes with %d: not a rotation of pairs", a, b, partner[b])
		}
	}
	for in := range m {
		for p := range m[in][0] {
			for out, v := range m[in][0][p].inOrder() {
				if out != in && out != partner[in] && math.Abs(v) > least {
					return nil, fmt.Errorf("channel %d reaches channel %d beside its partner %d: not a rotation of pairs", in, out, partner[in])
				}
			}
		}
	}
	return partner, nil
}

// fitEncoding reads layout, frequencies and gain from the results m of the basis vectors
// at position 0 and the powers of two.
func fitEncoding(m [][][]response, partner []int, powers []int64) (*Matrix, error) {
	first, width := -1, 0
	for c, p := range partner {
		if p != c {
			if first < 0 {
				first = c
			}
			width++
		}
	}
	fit := &Matrix{Factor: 1}
	if width == 0 {
		fit.Factor = m[0][0][0][0]
		for c := range m {
			for p := range powers {
				if math.Abs(m[c][0][p][c]-fit.Factor) > 8*ir.Float32eps*math.Abs(fit.Factor) {
					return nil, fmt.Errorf("channel %d is multiplied by %g at position %d and by %g elsewhere", c, m[c][0][p][c], powers[p], fit.Factor)
				}
			}
		}
		return fit, nil
	}
	n, err := arrange(&fit.Encoding, partner)
	if err != nil {
		return nil, err
	}
	pairs := fit.Encoding
	pairs.Frequencies = make([]float64, n)
	gain := m[first][0][0][first]
	if gain <= 0 {
		return nil, fmt.Errorf("the rotation at position 0 multiplies by %g", gain)
	}
	for c, p := range partner {
		if own := m[c][0][0][c]; p != c && math.Abs(own-gain) > 1e-2*gain {
			return nil, fmt.Errorf("at position 0, where nothing is rotated, channel %d is multiplied by %g and channel %d by %g; expected one factor, or one for each channel and none of them 0", first, gain, c, own)
		}
	}
	if end := fit.Encoding.Offset + 2*n; 2*n < len(m) {
		outside := end % len(m) // a channel behind the pairs, or else before them
		fit.Factor = m[outside][0][0][outside]
		if fit.Factor <= 0 {
			return nil, fmt.Errorf("channels that are not rotated are multiplied by %g", fit.Factor)
		}
	}
	fit.Encoding.Gain = gain / fit.Factor
	for x := range n {
		a, b := PairAt(pairs, x)
		switch {
		case partner[a] == b:
			fit.Encoding.Frequencies = append(fit.Encoding.Frequencies, frequency(m, a, b, powers))
			continue
		case partner[a] != a || partner[b] != b:
			return nil, fmt.Errorf("channel %d rotates with %d, expected %d", a, partner[a], b)
		}
		for _, c := range []int{a, b} {
			if own := m[c][0][0][c]; math.Abs(own-gain) > 1e-2*gain {
				return nil, fmt.Errorf("channel %d is not rotated although its neighbours are, and multiplied by %g, these by %g", c, own, gain)
			}
		}
		fit.Encoding.Frequencies = append(fit.Encoding.Frequencies, 0)
	}
	return fit, nil
}

// arrange finds the layout and the first channel of an encoding, and how many pairs it has. Those that
// do not turn are among them where others behind them do, or where their places follow from the
// distance of halves.
func arrange(e *rope.Encoding, partner []int) (pairs int, err error) {
	first, last, count := -1, 0, 0 // of the channels that are rotated with a later one
	for c, p := range partner {
		if p <= c {
			continue
		}
		if first < 0 {
			first = c
		}
		last, count = c, count+1
	}
	apart := partner[first] - first
	for c, p := range partner {
		switch {
		case p <= c:
		case p != c+apart:
			return 0, fmt.Errorf("channel %d rotates with %d, expected %d", c, p, c+apart)
		case apart == 1 && (c-first)%2 != 0:
			return 0, fmt.Errorf("channel %d is not rotated although its neighbours are", c-1)
		}
	}
	e.Offset = first
	if apart == 1 && count > 1 {
		e.Layout = rope.Interleaved
		return (last-first)/2 + 1, nil
	}
	e.Layout = rope.Half
	e.Offset = min(first, len(partner)-2*apart)
	if e.Offset < 0 || last >= e.Offset+apart {
		return 0, fmt.Errorf("channel %d rotates with %d; expected halves or neighbours", first, partner[first])
	}
	return apart, nil
}

// frequency returns the frequency of the pair of channels a and b.
func frequency(m [][][]response, a, b int, powers []int64) float64 {
	return unwound(powers, func(k int) float64 { return math.Atan2(m[a][0][k][b], m[a][0][k][a]) })
}

// unwound returns the frequency that turns by angle(k), up to full turns, at the k-th of some
// positions, each twice the one before. At each doubling it knows the angle up to full
// turns, and the last estimate gives their number.
func unwound(powers []int64, angle func(k int) float64) float64 {
	omega := 0.0
	for k, p := range powers {
		if p == 0 {
			continue
		}
		turn := angle(k)
		turns := math.Round((omega*float64(p) - turn) / (2 * math.Pi))
		omega = (turn + 2*math.Pi*turns) / float64(p)
	}
	return float64(float32(omega))
}
