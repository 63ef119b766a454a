package rope

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// randomized lets tokens stand at positions that are drawn from a range larger
// than the text and put into order, so that a model sees all distances of the
// range however short its texts.
var randomized = Method{
	Axis:    PositionsAxis,
	Name:    "randomized",
	Doc:     "Randomized positions: the n tokens of a text get n different positions, drawn from 0 … range − 1, in ascending order. The draw depends only on seed and n. In a batch, n is the padded length.",
	Formula: "token i has the i-th smallest of the n positions p below range whose splitmix64(seed·2^32 + p) is smallest",
	Source:  "Ruoss et al., Randomized Positional Encodings Boost Length Generalization of Transformers, arXiv:2305.16843, §3.1 (there a draw for each batch; here one for each length)",

	FineTuned: true,
	OneCall:   true,
	Params: []Param{
		{Name: "range", Kind: Tokens, Rule: atLeastOne, Doc: fmt.Sprintf("number of positions to draw from, at least the number of tokens and at most %d; must be given", maxDrawn)},
		{Name: "seed", Kind: Whole, Default: Integer(0), Rule: Rule{"between 0 and 2^32 − 1", func(x float64) bool { return x >= 0 && x < 1<<32 }}, Doc: "seed of the draw"},
	},
	apply: func(e edit) (Attention, []string, error) {
		switch {
		case len(e.Encoding.Frequencies) == 0:
			return Attention{}, nil, cmp.Or(e.byDistance(), errors.New("the attention has no rotation, so positions have no effect on it"))
		case !e.Distance.IsZero():
			return Attention{}, nil, errors.New("the attention also has a bias by distance, which goes by indices, not by drawn positions")
		case len(e.Bands) > 1:
			return Attention{}, nil, errors.New("the attention already has a position map; two cannot be combined")
		case !e.given("range"):
			return Attention{}, nil, errors.New("give range=, the number of positions to draw from")
		case e.integer("range") > maxDrawn:
			return Attention{}, nil, fmt.Errorf("range=%d is above %d, the largest table of positions that is written into a model", e.integer("range"), int64(maxDrawn))
		case e.Length > e.integer("range"):
			return Attention{}, nil, fmt.Errorf("range=%d is less than the context of %d tokens", e.integer("range"), e.Length)
		case e.Cache == Raw:
			return Attention{}, nil, errors.New("keys that are cached un-rotated are rotated by their index in the row, not by a drawn position; leave --cache raw and length=run out")
		}
		e.Drawn = Drawn{Range: e.integer("range"), Seed: e.integer("seed")}
		return e.Attention, nil, nil
	},
}

const maxDrawn = 1 << 22

// Drawn says from which range a text's positions are drawn. With the zero
// value tokens keep their own positions.
type Drawn struct {
	Range int64 `json:"range"` // how many positions there are, from 0 on
	Seed  int64 `json:"seed,omitzero"`
}

// Order returns all positions of the range in the order in which they are
// drawn: the tokens of a text of n tokens have the first n, sorted.
func (d Drawn) Order() []int64 {
	type ticket struct {
		key      uint64
		position int64
	}
	tickets := make([]ticket, d.Range)
	for p := range tickets {
		tickets[p] = ticket{splitmix64(uint64(d.Seed)<<32 + uint64(p)), int64(p)}
	}
	slices.SortFunc(tickets, func(a, b ticket) int { return cmp.Compare(a.key, b.key) })
	order := make([]int64, len(tickets))
	for i, t := range tickets {
		order[i] = t.position
	}
	return order
}

// Positions returns the positions of n tokens; n must not exceed the range.
func (d Drawn) Positions(n int) []int64 {
	return slices.Sorted(slices.Values(d.Order()[:n]))
}

// splitmix64 mixes 64 bits one to one. (Steele, Lea and Flood, Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014, with Stafford's constants.)
func splitmix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
