package score

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// A mask that hides later keys in a short call need not do so in a long one. So rows of
// long calls are evaluated too before a mask is called causal.

// everyLater is the number of tokens of a call of which every row is evaluated; maxLater
// is the largest number of scores in one evaluation.
const (
	everyLater = 1024
	maxLater   = 1 << 21
)

// look is some rows of a call.
type look struct {
	rows  []int64 // the indices of their queries among all tokens
	total int64   // number of keys
}

// hidesLater reports whether no query sees a later key: in every row of a call of about a
// thousand tokens, and in some rows of calls up to the largest length.
func (s *Scorer) hidesLater(ctx context.Context, rng *rand.Rand) (bool, error) {
	if s.ends() {
		return true, nil // every row is compared elsewhere
	}
	for _, k := range s.looks(rng) {
		length := int64(len(k.rows))
		pt := dim.Point{B: 1, L: length, P: k.total - length}
		given, err := s.given(rng, pt, slices.Repeat([]int64{1}, int(k.total)))
		if err != nil {
			return false, err
		}
		s.feedLarge(rng, given)
		if s.byRows {
			given[eval.RowsInput] = engine.Int64s(k.rows, length)
		}
		out, err := s.ZeroRows(ctx, pt, given)
		if err != nil {
			return false, err
		}
		for r, row := range out {
			_, _, i := s.place(pt, r)
			if slices.ContainsFunc(row[k.rows[i]+1:k.total], func(v float32) bool { return v > Masked }) {
				return false, nil
			}
		}
	}
	return true, nil
}

// looks returns the rows to evaluate. Where rows cannot be chosen, they are the last ones
// of a call.
func (s *Scorer) looks(rng *rand.Rand) (list []look) {
	if !s.byRows {
		length := int64(2)
		for length < everyLater && (length+1)*(length+1)*s.Fed.Heads <= maxLater {
			length++
		}
		for _, pt := range []dim.Point{{B: 1, L: length, P: 0}, {B: 1, L: 8, P: 8 * everyLater}, {B: 1, L: 2, P: s.longest}} {
			pt.L = min(pt.L, s.longest+1)
			pt.P = min(pt.P, s.longest+1-pt.L)
			pt = s.clamped(pt)
			list = append(list, look{consecutive(pt.P, pt.L), pt.P + pt.L})
		}
		return list
	}
	total := min(everyLater, s.longest+1)
	some := max(maxLater/(s.Fed.Heads*total), 1)
	for first := int64(0); first < total; first += some {
		list = append(list, look{consecutive(first, min(some, total-first)), total})
	}
	for _, total := range []int64{min(8*everyLater, s.longest+1), s.longest + 1} {
		list = append(list, look{[]int64{0}, total}, look{[]int64{max(total-2, 0)}, total}, look{[]int64{rng.Int64N(total)}, total})
	}
	return list
}

// consecutive returns count numbers from first on.
func consecutive(first, count int64) []int64 {
	list := make([]int64, count)
	for i := range list {
		list[i] = first + int64(i)
	}
	return list
}

// steps are how far a position may be from the one before it: 1 within a text, and others where a text begins.
var steps = []int64{1, 0, -1, 2, -3, 9, -1000}

// farBack is the length of rows with texts of random length.
const farBack = 64

// SeesInOrder reports whether a key is visible only if as many positions as places lie between it and the query, whatever
// positions a row has. It tries every row of four tokens with such steps, and long rows of texts.
func (s *Scorer) SeesInOrder(ctx context.Context, positions *onnx.ValueInfo) (bool, error) {
	rng := rand.New(rand.NewPCG(51, 52))
	rows := [][]int64{{1000}}
	for range 3 {
		var longer [][]int64
		for _, row := range rows {
			for _, step := range steps {
				longer = append(longer, append(slices.Clone(row), max(row[len(row)-1]+step, 0)))
			}
		}
		rows = longer
	}
	if ok, err := s.inOrder(ctx, rng, positions, rows); !ok || err != nil {
		return false, err
	}
	var texts [][]int64
	for range 4 {
		row := []int64{rng.Int64N(100)}
		for len(row) < farBack {
			next := row[len(row)-1] + 1
			if rng.IntN(8) == 0 {
				next = rng.Int64N(3)
			}
			row = append(row, next)
		}
		texts = append(texts, row)
	}
	return s.inOrder(ctx, rng, positions, texts)
}

// inOrder is SeesInOrder for rows of one length.
func (s *Scorer) inOrder(ctx context.Context, rng *rand.Rand, positions *onnx.ValueInfo, rows [][]int64) (bool, error) {
	for some := range slices.Chunk(rows, int(s.together(int64(len(rows))))) {
		pt := dim.Point{B: int64(len(some)), L: int64(len(some[0]))}
		if s.clamped(pt) != pt {
			return false, nil
		}
		given, err := s.given(rng, pt, slices.Repeat([]int64{1}, int(pt.B*pt.L)))
		if err != nil {
			return false, err
		}
		if given[positions.Name], err = engine.Integers(positions.Type, slices.Concat(some...), pt.B, pt.L); err != nil {
			return false, err
		}
		out, err := s.ZeroRows(ctx, pt, given)
		if err != nil {
			return false, err
		}
		for r, row := range out {
			_, b, i := s.place(pt, r)
			for j, v := range row {
				if v > Masked && some[b][i]-some[b][j] != i-int64(j) {
					return false, nil
				}
			}
		}
	}
	return true, nil
}
