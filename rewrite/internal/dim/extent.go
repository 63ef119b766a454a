package dim

import (
	"fmt"
	"strings"
)

// Saturated multiplies sizes without overflow.
func Saturated(a, b int64) int64 {
	if f := float64(a) * float64(b); f > 1<<62 {
		return 1 << 62
	}
	return a * b
}

// Point is one choice of sizes: batch, new tokens, cached tokens.
type Point struct{ B, L, P int64 }

func (p Point) String() string { return fmt.Sprintf("batch %d, length %d, past %d", p.B, p.L, p.P) }

// Extent is a size as a polynomial in batch B, length L and past P:
// One + B·B + L·L + P·P + BL·B·L + BP·B·P.
type Extent struct{ One, B, L, P, BL, BP int64 }

func (e Extent) At(p Point) int64 {
	return e.One + e.B*p.B + e.L*p.L + e.P*p.P + e.BL*p.B*p.L + e.BP*p.B*p.P
}

var (
	BatchExtent  = Extent{B: 1}
	LengthExtent = Extent{L: 1}
	PastExtent   = Extent{P: 1}
	TotalExtent  = Extent{L: 1, P: 1}
)

func ConstantExtent(n int64) Extent { return Extent{One: n} }

// Constant reports whether e does not depend on the sizes.
func (e Extent) Constant() bool { return e == Extent{One: e.One} }

func (e Extent) String() string {
	s := ""
	for _, t := range []struct {
		c    int64
		name string
	}{{e.B, "batch"}, {e.L, "length"}, {e.P, "past"}, {e.BL, "batch·length"}, {e.BP, "batch·past"}} {
		switch {
		case t.c == 0:
		case t.c == 1:
			s += " + " + t.name
		default:
			s += fmt.Sprintf(" + %d·%s", t.c, t.name)
		}
	}
	if e.One != 0 || s == "" {
		s += fmt.Sprintf(" + %d", e.One)
	}
	return s[3:]
}

// SamplePoints are where shapes are measured: the first six determine an
// extent, the others check it. Without a cache past stays 0.
func SamplePoints(hasPast bool) []Point {
	points := []Point{{2, 4, 6}, {2, 5, 6}, {2, 4, 7}, {3, 4, 6}, {3, 5, 6}, {3, 4, 7}, {1, 3, 2}, {4, 9, 11}, {2, 1, 5}}
	if !hasPast {
		for i := range points {
			points[i].P = 0
		}
	}
	return points
}

// FitExtent finds the extent that gives the sampled values, if one does.
func FitExtent(points []Point, values []int64) (Extent, bool) {
	at := func(b, l, p int) int64 { // the sample with these offsets from the first
		return values[b*3+l+2*p]
	}
	var slopeL, slopeP, rest [2]int64
	for b := range 2 {
		slopeL[b] = at(b, 1, 0) - at(b, 0, 0)
		slopeP[b] = at(b, 0, 1) - at(b, 0, 0)
		rest[b] = at(b, 0, 0) - slopeL[b]*points[0].L - slopeP[b]*points[0].P
	}
	b0 := points[0].B
	line := func(v [2]int64) (one, slope int64) { slope = v[1] - v[0]; return v[0] - slope*b0, slope }
	var e Extent
	e.L, e.BL = line(slopeL)
	e.P, e.BP = line(slopeP)
	e.One, e.B = line(rest)
	for i, p := range points {
		if e.At(p) != values[i] {
			return Extent{}, false
		}
	}
	return e, true
}

// LastConstant returns the last dimension if it is constant, 0 otherwise.
func LastConstant(dims []Extent) int64 {
	if len(dims) == 0 || !dims[len(dims)-1].Constant() {
		return 0
	}
	return dims[len(dims)-1].One
}

// Longest is the distance up to which a window is looked for.
const Longest = 131071

// FitAll fits every element of a sampled shape; the rank must not change.
func FitAll(points []Point, samples [][]int64) ([]Extent, bool) {
	if len(samples) != len(points) {
		return nil, false
	}
	fit := make([]Extent, len(samples[0]))
	for i := range fit {
		column := make([]int64, len(points))
		for k, s := range samples {
			if len(s) != len(fit) {
				return nil, false
			}
			column[k] = s[i]
		}
		var ok bool
		if fit[i], ok = FitExtent(points, column); !ok {
			return nil, false
		}
	}
	return fit, true
}

func Evaluate(dims []Extent, pt Point) []int64 {
	out := make([]int64, len(dims))
	for i, e := range dims {
		out[i] = e.At(pt)
	}
	return out
}

// Over returns pt with the sizes of f that are fixed in place of its own.
func (f Point) Over(pt Point) Point {
	for _, s := range []struct {
		fixed int64
		size  *int64
	}{{f.B, &pt.B}, {f.L, &pt.L}, {f.P, &pt.P}} {
		if s.fixed > 0 {
			*s.size = s.fixed
		}
	}
	return pt
}

// Counted makes of a call of a counted cache one of the sizes that are fixed.
func (p Point) Counted(length int64, tokens []int64) (int64, []int64) {
	if p.B > 0 {
		for int64(len(tokens)) < p.B {
			tokens = append(tokens, tokens[0])
		}
		tokens = tokens[:p.B]
	}
	if p.L > 0 {
		length = p.L
		tokens[0] = max(tokens[0], length)
		if length > 1 && len(tokens) > 1 { // such a call is a first one
			for i := range tokens {
				tokens[i] = min(tokens[i], length)
			}
		}
	}
	return length, tokens
}

// Joined lists words as a sentence does.
func Joined(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}
