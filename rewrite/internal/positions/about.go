package positions

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// About is what was seen of positions when they were evaluated.
type About struct {
	Indices bool   // they are the indices of tokens, or these times a number
	Unlike  string // why those of real tokens are not the index plus one number for each row, the same in all of its calls; "" where they are
	Below0  bool   // those of some real tokens are below 0
	Shifted bool   // without padding they are not the index itself, or what the input of positions tells
}

// sightings is what about has seen so far.
type sightings struct {
	About
	byIndex   bool // index plus a number
	follows   bool // what the input of positions tells, plus a number that is always the same
	shift, by float64
	factor    float64 // of the indices
}

// largestWhole is the largest number that is taken for a position.
const largestWhole = 1 << 31

// choose returns the nearest candidate that holds whole numbers, or a farther one with the same
// numbers where that is in a type for them. It returns nil where none does.
func (r *Reader) choose(ctx context.Context) (*Computed, error) {
	seen := make([][]float64, len(r.values))
	for _, c := range r.calls() {
		all, err := r.at(ctx, c)
		if err != nil {
			return nil, err
		}
		for i, x := range all {
			seen[i] = append(seen[i], x...)
		}
	}
	whole := func(list []float64) bool {
		return !slices.ContainsFunc(list, func(x float64) bool { return x != math.Trunc(x) || math.Abs(x) > largestWhole })
	}
	nearest := slices.IndexFunc(seen, whole)
	if nearest < 0 {
		return nil, nil
	}
	best := nearest
	cost := func(i int) int { // of making int64 [batch or 1, length] of it
		steps := 0
		if r.typeOf(i) != onnx.Int64 {
			steps++
		}
		if len(r.dims[r.values[i]]) != 2 || ofAll(r.dims[r.values[i]]) {
			steps++
		}
		return steps
	}
	for i := nearest + 1; i < len(seen); i++ {
		if slices.Equal(seen[i], seen[nearest]) && cost(i) < cost(best) {
			best = i
		}
	}
	v := r.values[best]
	return &Computed{Value: v, Type: r.typeOf(best), Dims: r.dims[v], Inputs: r.loaded.Piece.Inputs, Mask: r.mask, Ids: r.ids}, nil
}

func (r *Reader) typeOf(i int) onnx.DataType { return r.loaded.Piece.Graph.Element(r.values[i]) }

// calls are those in which candidates are compared: prefill and decode, with every kind of padding.
func (r *Reader) calls() (list []call) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i, pt := range []dim.Point{{B: 2, L: 5, P: 0}, {B: 3, L: 7, P: 4}, {B: 2, L: 1, P: 9}, {B: 1, L: 6, P: 3}, {B: 2, L: 11, P: 5}} {
		pt = r.sized(pt)
		list = append(list, call{pt: pt, mask: eval.Padding(rng, pt, eval.PaddingKind(i)), starts: []int64{2, 30, 5}})
	}
	return list
}

// sized returns a call with all of its tokens new where the model has no cache, and with the static sizes.
func (r *Reader) sized(pt dim.Point) dim.Point {
	if !r.loaded.Table.Past {
		pt.L, pt.P = pt.L+pt.P, 0
	}
	return r.loaded.Table.At(pt)
}

// about completes positions by evaluating them in texts that are padded in front, in one call and in
// several, and in very long ones. What the graph does not compute tells nothing.
func (r *Reader) about(ctx context.Context, c *Computed) error {
	seen := sightings{About: About{Indices: len(c.Inputs) == 0}, byIndex: true, follows: r.ids != nil, by: math.NaN(), factor: math.NaN()}
	for _, text := range []struct{ first, length int64 }{{0, 9}, {4, 9}, {1, 12}, {7, 20}} {
		seen.shift = math.NaN()
		for _, pt := range []dim.Point{{L: text.length}, {L: text.length - 1, P: 1}, {L: 1, P: text.length - 1}, {L: 3, P: text.length - 3}, {L: text.length - 2}, {L: text.length + 3}} {
			if pt.P > 0 && !r.loaded.Table.Past {
				continue
			}
			if pt.B = 1; !r.loaded.Table.Past {
				seen.shift = math.NaN() // each text is one call
			}
			if err := r.look(ctx, &seen, r.sized(pt), text.first); err != nil {
				return err
			}
		}
	}
	if err := r.smallTexts(ctx, &seen); err != nil {
		return err
	}
	seen.shift = math.NaN()
	for _, tokens := range []int64{9, 301, 2049, 4_097, 20_011, 65_537, dim.Longest + 1} { // of one text, where there is a cache
		if !r.loaded.Table.Past {
			seen.shift = math.NaN()
		}
		if err := r.look(ctx, &seen, r.sized(dim.Point{B: 1, L: 1, P: tokens - 1}), 0); err != nil {
			if bisect.Ended(err) {
				return err
			}
			break
		}
	}
	if !seen.follows {
		c.Ids = nil
	}
	for _, v := range c.Inputs {
		if v != c.Ids && (v != c.Mask || !r.padding) {
			seen.Unlike = fmt.Sprintf("they depend on the input %q, so they may differ from the index of each token plus one number for its row", short.Name(v.Name))
		}
	}
	if c.Ids == nil && seen.Unlike == "" && !seen.byIndex {
		seen.Unlike = "they are not the index of each token plus one number for its row"
	}
	c.About = seen.About
	return nil
}

// smallTexts looks at every call of few tokens, with every number of padded tokens in front.
func (r *Reader) smallTexts(ctx context.Context, seen *sightings) error {
	for first := range int64(dim.SmallWidth) {
		seen.shift = math.NaN() // one text, which grows
		for pt := range dim.SmallCalls {
			pt.B = 1
			if pt.Keys() <= first || pt.P > 0 && !r.loaded.Table.Past || r.sized(pt) != pt {
				continue
			}
			if !r.loaded.Table.Past {
				seen.shift = math.NaN() // each text is one call
			}
			if err := r.look(ctx, seen, pt, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// look evaluates a call of one text whose first tokens are padding, and keeps what holds in it too.
func (r *Reader) look(ctx context.Context, seen *sightings, pt dim.Point, first int64) error {
	row := slices.Repeat([]int64{1}, int(pt.Keys()))
	clear(row[:min(first, pt.Keys())])
	c := call{pt: pt, mask: slices.Repeat(row, int(pt.B))}
	if r.ids != nil {
		c.starts = []int64{3 * pt.L * (first + 2)}
	}
	all, err := r.at(ctx, c)
	if err != nil {
		return err
	}
	for i, p := range all[0] {
		index := pt.P + int64(i)%pt.L
		shift := p - float64(index)
		if math.IsNaN(seen.factor) && index > 0 {
			seen.factor = p / float64(index)
		}
		seen.Indices = seen.Indices && (index == 0 && p == 0 || p == float64(index)*seen.factor && p != 0)
		if row[index] == 0 {
			continue
		}
		if math.IsNaN(seen.shift) {
			seen.shift = shift
		}
		seen.byIndex = seen.byIndex && shift == seen.shift
		seen.Below0 = seen.Below0 || p < 0
		if r.ids == nil {
			seen.Shifted = seen.Shifted || first == 0 && shift != 0
			continue
		}
		by := p - float64(c.starts[0]+int64(i)%pt.L)
		if math.IsNaN(seen.by) {
			seen.by = by
		}
		seen.follows = seen.follows && by == seen.by
		seen.Shifted = seen.Shifted || by != 0
	}
	return nil
}

// Tokens returns the number of tokens of the longest text whose positions are all at most limit, and
// where an input tells positions the largest one that it may tell.
func (r *Reader) Tokens(ctx context.Context, limit int64) (int64, error) {
	within := func(tokens int64) (bool, error) {
		pt := dim.Point{B: 1, L: 1, P: tokens - 1}
		if r.ids != nil {
			pt.P = 0
		}
		pt = r.sized(pt)
		all, err := r.at(ctx, call{pt: pt, mask: slices.Repeat([]int64{1}, int(pt.B*pt.Keys())), starts: []int64{tokens - 1}})
		switch {
		case bisect.Ended(err):
			return false, err
		case err != nil:
			return false, nil
		}
		return slices.Max(all[0]) <= float64(limit), nil
	}
	all, err := within(dim.Longest + 1)
	if err != nil || all {
		return dim.Longest + 1, err
	}
	return bisect.Largest(0, dim.Longest+1, within)
}

// Differ returns an error where two values are not the same positions.
func Differ(ctx context.Context, ev *eval.Evaluator, a, b *Computed) (bool, error) {
	if a.Value == b.Value {
		return false, nil
	}
	x, err := Open(ctx, ev, a)
	if err != nil {
		return false, err
	}
	defer x.Close()
	y, err := Open(ctx, ev, b)
	if err != nil {
		return false, err
	}
	defer y.Close()
	for _, c := range x.calls() {
		p, err := x.at(ctx, c)
		if err != nil {
			return false, err
		}
		q, err := y.at(ctx, c)
		if err != nil {
			return false, err
		}
		if !slices.Equal(p[0], q[0]) {
			return true, nil
		}
	}
	return false, nil
}
