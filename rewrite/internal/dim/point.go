package dim

import "fmt"

// Point is one choice of sizes: B rows of a batch, L new tokens (the length),
// P cached tokens (the past) and S tokens of another text (the source), 0 where the keys
// are not those of one.
type Point struct{ B, L, P, S int64 }

// String is the point in words, for messages.
func (p Point) String() string {
	text := fmt.Sprintf("batch %d, length %d, past %d", p.B, p.L, p.P)
	if p.S > 0 {
		text += fmt.Sprintf(", source %d", p.S)
	}
	return text
}

// Keys is how many keys a query may see: those of the source, or past and new ones.
func (p Point) Keys() int64 {
	if p.S > 0 {
		return p.S
	}
	return p.P + p.L
}

// Over returns pt with its sizes replaced by the static sizes in p. A size of 0
// in p is not static.
func (p Point) Over(pt Point) Point {
	for _, s := range []struct {
		static int64
		size   *int64
	}{{p.B, &pt.B}, {p.L, &pt.L}, {p.P, &pt.P}} {
		if s.static > 0 {
			*s.size = s.static
		}
	}
	return pt
}

// WithinLengthTracked adapts a call with a length-tracked cache to the static sizes in p; a size
// of 0 in p is not static. length is the number of new tokens, tokens holds the
// number in each row of the batch after the call. It may write to tokens.
func (p Point) WithinLengthTracked(length int64, tokens []int64) (int64, []int64) {
	if p.B > 0 {
		for int64(len(tokens)) < p.B {
			tokens = append(tokens, tokens[0])
		}
		tokens = tokens[:p.B]
	}
	if p.L > 0 {
		length = p.L
		tokens[0] = max(tokens[0], length)
		if length > 1 && len(tokens) > 1 { // such a call is the first one: nothing is cached
			for i := range tokens {
				tokens[i] = min(tokens[i], length)
			}
		}
	}
	return length, tokens
}

// OneIf is 1 for true and 0 for false.
func OneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// SamplePoints are the points at which shapes are measured: the first six, and the two
// behind the rest that a source adds, determine an extent, the others check it. Without a
// cache the past is 0, without another text the source.
func SamplePoints(hasPast, hasSource bool) []Point {
	points := []Point{{2, 4, 6, 8}, {2, 5, 6, 8}, {2, 4, 7, 8}, {3, 4, 6, 8}, {3, 5, 6, 8}, {3, 4, 7, 8}, {1, 3, 2, 5}, {4, 9, 11, 3}, {2, 1, 5, 12}}
	if hasSource {
		points = append(points, Point{2, 4, 6, 9}, Point{3, 4, 6, 9})
	}
	for i := range points {
		if !hasPast {
			points[i].P = 0
		}
		if !hasSource {
			points[i].S = 0
		}
	}
	return points
}

// Longest is the largest position of the 131,072 tokens with which a model is evaluated,
// and the largest distance at which a window is searched.
const Longest = 131071
