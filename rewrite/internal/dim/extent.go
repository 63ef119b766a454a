package dim

import (
	"fmt"
)

// Extent is a size as a polynomial in batch B, length L, past P and source S:
// One + B·B + L·L + P·P + S·S + BL·B·L + BP·B·P + BS·B·S.
type Extent struct{ One, B, L, P, BL, BP, S, BS int64 }

// At returns the size at a point.
func (e Extent) At(p Point) int64 {
	return e.One + e.B*p.B + e.L*p.L + e.P*p.P + e.S*p.S + e.BL*p.B*p.L + e.BP*p.B*p.P + e.BS*p.B*p.S
}

// The sizes that the dimensions of inputs and hidden states most often have.
var (
	BatchExtent  = Extent{B: 1}
	LengthExtent = Extent{L: 1}
	PastExtent   = Extent{P: 1}
	TotalExtent  = Extent{L: 1, P: 1} // past + length: all keys
	SourceExtent = Extent{S: 1}       // of another text
)

// ConstantExtent is the size n at every point.
func ConstantExtent(n int64) Extent { return Extent{One: n} }

// Constant reports whether e does not depend on the sizes.
func (e Extent) Constant() bool { return e == Extent{One: e.One} }

// String is the size in words, such as "length + past".
func (e Extent) String() string {
	s := ""
	for _, t := range []struct {
		c    int64
		name string
	}{{e.B, "batch"}, {e.L, "length"}, {e.P, "past"}, {e.BL, "batch·length"}, {e.BP, "batch·past"}, {e.S, "source"}, {e.BS, "batch·source"}} {
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

// Evaluate returns a shape at a point.
func Evaluate(dims []Extent, pt Point) []int64 {
	out := make([]int64, len(dims))
	for i, e := range dims {
		out[i] = e.At(pt)
	}
	return out
}

// LastConstant returns the last dimension if it is constant, and 0 otherwise.
func LastConstant(dims []Extent) int64 {
	if len(dims) == 0 || !dims[len(dims)-1].Constant() {
		return 0
	}
	return dims[len(dims)-1].One
}

// Saturated returns a·b, at most 2⁶²: sizes multiply without overflow.
func Saturated(a, b int64) int64 {
	if f := float64(a) * float64(b); f > 1<<62 {
		return 1 << 62
	}
	return a * b
}
