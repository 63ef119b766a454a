package formula

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// base numbers what questions are about, counted over all tokens of a row: differences of two of these.
type base int

const (
	zero base = iota
	past
	own   // the query's place: past + its index
	key   // the key's
	total // past + length
	row
	batch
	bases
)

// Point is one key of one query of a call.
type Point struct {
	at               [bases]int64
	KeyReal, OwnReal bool // what the padding mask says of the key, and of the query's own token
}

func (p Point) String() string {
	return fmt.Sprintf("with %d cached and %d new tokens, of the query at %d and the key at %d", p.at[past], p.at[total]-p.at[past], p.at[own], p.at[key])
}

// Distance is how far before the query the key is.
func (p Point) Distance() int64 { return p.at[own] - p.at[key] }

// difference is first − second + constant: what a question compares with 0.
type difference struct {
	first, second base
	constant      float64
}

// differenceOf returns a form as a difference; ok is false for other forms.
func (r *Reader) differenceOf(f Form) (d difference, ok bool) {
	var of [bases]float64
	cached := float64(dim.OneIf(r.table.Past))
	variables, constant := f.rest()
	for _, p := range variables {
		if p.of[0] != one {
			return d, false
		}
		switch x := p.factor; p.of[1] {
		case Past:
			of[past] += x
		case Length:
			of[total], of[past] = of[total]+x, of[past]-x*cached
		case Query:
			of[own], of[past] = of[own]+x, of[past]-x*cached
		case Key:
			of[key] += x
		case Row:
			of[row] += x
		case Batch:
			of[batch] += x
		default:
			return d, false
		}
	}
	d.constant = constant
	for b, x := range of {
		switch {
		case x == 1 && d.first == zero:
			d.first = base(b)
		case x == -1 && d.second == zero:
			d.second = base(b)
		case x != 0:
			return d, false
		}
	}
	return d, true
}

// Mask reports whether a query may see a key, or may not see it, as it does.
type Mask func(p Point, sees bool) bool

// mostPoints is how many points are looked at.
const mostPoints = 1 << 20

// Decide compares what the piece gives for scores of zero with a mask, for every number of tokens, rows and cached
// tokens: a value above hidden shows a key. edge is the distance at which the mask ends. Unread is the error of
// a formula that asks other questions than which of two places or sizes is larger by how much.
//
// A question is x − y ≤ c, with x and y among 0, the numbers of cached and of all tokens, and the places of the query,
// the key and the row. Where a set of answers is possible at all, it is so at a point where enough questions are just
// answered (a vertex of the polyhedron): each of x and y is tied to another one, or to 0, by a constant of a question.
// All such points are compared, so that none is left where the two could differ.
func (r *Reader) Decide(out string, scores dim.Grid, mask Mask, edge int64, hidden float64) (differs *Point, shown []Form, err error) {
	r.heads = scores.Heads
	x, err := r.at(out, r.indexIn(scores))
	if err != nil {
		return nil, nil, err
	}
	var ties [bases][bases][]int64 // first − second is one of these where a question is just answered
	tie := func(a, b base, by ...int64) {
		for _, d := range by {
			if !slices.Contains(ties[a][b], d) {
				ties[a][b], ties[b][a] = append(ties[a][b], d), append(ties[b][a], -d)
			}
		}
	}
	tie(past, zero, 0)
	tie(own, past, 0)
	tie(total, own, 1)
	tie(key, zero, 0)
	tie(total, key, 1)
	tie(own, key, -1, 0, 1)
	tie(own, key, edge, edge+1, -edge, -edge-1)
	rows := false
	asked := map[*test]difference{}
	for t := range x.tests {
		d, ok := r.differenceOf(t.form)
		if !ok {
			return nil, nil, unread("a condition is about %s", r.text(t.form))
		}
		asked[t] = d
		switch c := math.Floor(-d.constant); {
		case t.bit && d.constant == 0 && d.second == zero && (d.first == key || d.first == own):
		case t.bit:
			return nil, nil, unread("the padding mask is read at another place than a key's or a query's")
		case math.Abs(c) > math.MaxInt32:
		case t.equal:
			tie(d.first, d.second, int64(c)-1, int64(c), int64(c)+1)
		default:
			tie(d.first, d.second, int64(c), int64(c)+1)
		}
		rows = rows || max(d.first, d.second) >= row
	}
	used := total
	if rows {
		used = batch
		tie(row, zero, 0)
		tie(batch, row, 1)
		tie(batch, zero, 1)
	}
	holds := func(p *Point) func(*test) bool {
		return func(t *test) bool {
			d := asked[t]
			switch y := float64(p.at[d.first]-p.at[d.second]) + d.constant; {
			case t.bit && d.first == key:
				return p.KeyReal
			case t.bit:
				return p.OwnReal
			case t.equal:
				return y == 0
			default:
				return y <= 0
			}
		}
	}
	compare := func(p Point) bool {
		if p.at[past] < 0 || p.at[own] < p.at[past] || p.at[total] <= p.at[own] || p.at[key] < 0 || p.at[key] >= p.at[total] ||
			rows && (p.at[row] < 0 || p.at[batch] <= p.at[row]) || !r.table.Past && p.at[past] > 0 || single(r.table) && p.at[total] != p.at[past]+1 {
			return true
		}
		for n := range 4 {
			p.KeyReal, p.OwnReal = n&1 != 0, n&2 != 0
			if p.at[key] == p.at[own] && p.KeyReal != p.OwnReal {
				continue
			}
			f := x.at(holds(&p))
			_, constant := f.rest()
			if !mask(p, constant > hidden) {
				differs = &p
				return false
			}
			if constant > hidden && !slices.ContainsFunc(shown, func(g Form) bool { return equal(f, g) }) {
				shown = append(shown, f)
			}
		}
		return true
	}
	if !points(used, &ties, compare) && differs == nil {
		return nil, nil, unread("it asks too many questions")
	}
	return differs, shown, nil
}

// points calls see with every point in which each place is tied to another one or to 0, until it returns false.
func points(used base, ties *[bases][bases][]int64, see func(Point) bool) bool {
	type state struct {
		p    Point
		done uint8
	}
	all := uint8(1)<<(used+1) - 1
	seen := map[state]bool{}
	var walk func(s state) bool
	walk = func(s state) bool {
		if seen[s] {
			return true
		}
		if seen[s] = true; len(seen) > mostPoints {
			return false
		}
		if s.done == all {
			return see(s.p)
		}
		for a := past; a <= used; a++ {
			for b := zero; b <= used; b++ {
				if s.done>>a&1 != 0 || s.done>>b&1 == 0 {
					continue
				}
				for _, d := range ties[a][b] {
					next := s
					next.p.at[a], next.done = s.p.at[b]+d, s.done|1<<a
					if !walk(next) {
						return false
					}
				}
			}
		}
		return true
	}
	return walk(state{done: 1})
}

// indexIn is the index of one score in a grid: of a row, a head, a query and a key.
func (r *Reader) indexIn(g dim.Grid) []Form {
	if g.Folded {
		return []Form{{{monomial{one, Row}, float64(g.Heads)}, {monomial{one, Head}, 1}}, r.query(), variable(Key)}
	}
	return []Form{variable(Row), variable(Head), r.query(), variable(Key)}
}

// text names a form for a message.
func (r *Reader) text(f Form) string {
	names := []string{"", "the batch", "the length", "the number of cached tokens", "the row", "the query", "the key", "the head"}
	list := ""
	for _, p := range f {
		for _, v := range p.of {
			switch {
			case v == one:
			case v < opaque:
				list += ", " + names[v]
			default:
				list += ", " + r.symbols[v-opaque].String()
			}
		}
	}
	if list == "" {
		return "constants"
	}
	return list[2:]
}

// Alike reports whether what is added to visible keys is one number or, by distance, a number for each head times the
// place of the key, or how many tokens there are up to it: a softmax does not tell what all keys of a query have in common.
func (r *Reader) Alike(shown []Form, byDistance bool) bool {
	for k, f := range shown {
		if _, constant := f.constant(); k > 0 && !equal(f, shown[0]) || !constant && !byDistance {
			return false
		}
		for _, p := range f {
			if !r.slope(p.of[0], p.of[1]) && !r.slope(p.of[1], p.of[0]) {
				return false
			}
		}
	}
	return true
}

// slope reports whether a number is that of a head, or none, and the other one is a place, a size, a number of tokens,
// or none.
func (r *Reader) slope(number, place Variable) bool {
	return (number == one || r.still(variable(number))) && (place < opaque || r.symbols[place-opaque].op == "CumSum" || r.still(variable(place)))
}
