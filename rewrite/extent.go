package rewrite

import "fmt"

// point is one choice of sizes: batch, new tokens, cached tokens.
type point struct{ B, L, P int64 }

func (p point) String() string { return fmt.Sprintf("batch %d, length %d, past %d", p.B, p.L, p.P) }

// extent is a size as a polynomial in batch B, length L and past P:
// One + B·B + L·L + P·P + BL·B·L + BP·B·P.
type extent struct{ One, B, L, P, BL, BP int64 }

func (e extent) at(p point) int64 {
	return e.One + e.B*p.B + e.L*p.L + e.P*p.P + e.BL*p.B*p.L + e.BP*p.B*p.P
}

var (
	batchExtent  = extent{B: 1}
	lengthExtent = extent{L: 1}
	pastExtent   = extent{P: 1}
	totalExtent  = extent{L: 1, P: 1}
)

func constantExtent(n int64) extent { return extent{One: n} }

// constant reports whether e does not depend on the sizes.
func (e extent) constant() bool { return e == extent{One: e.One} }

func (e extent) String() string {
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

// samplePoints are where shapes are measured: the first six determine an
// extent, the others check it. Without a cache past stays 0.
func samplePoints(hasPast bool) []point {
	points := []point{{2, 4, 6}, {2, 5, 6}, {2, 4, 7}, {3, 4, 6}, {3, 5, 6}, {3, 4, 7}, {1, 3, 2}, {4, 9, 11}, {2, 1, 5}}
	if !hasPast {
		for i := range points {
			points[i].P = 0
		}
	}
	return points
}

// fitExtent finds the extent that gives the sampled values, if one does.
func fitExtent(points []point, values []int64) (extent, bool) {
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
	var e extent
	e.L, e.BL = line(slopeL)
	e.P, e.BP = line(slopeP)
	e.One, e.B = line(rest)
	for i, p := range points {
		if e.at(p) != values[i] {
			return extent{}, false
		}
	}
	return e, true
}
