package formula

import (
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Variable numbers what a Form is made of: sizes, places, and from opaque on what is not looked into.
type Variable int

// The sizes and places. A place counts from 0: Row below Batch, Query below Length, Key below Past + Length (below
// Length without a cache). Head is below a constant.
const (
	one Variable = iota
	Batch
	Length
	Past
	Row
	Query
	Key
	Head
	opaque
)

// monomial is a variable, or the product of two.
type monomial [2]Variable // the first is not above the second; one for none

// part is a monomial and its factor.
type part struct {
	of     monomial
	factor float64
}

// Form is a sum of monomials with factors, in their order, without zeros.
type Form []part

func number(x float64) Form {
	if x == 0 {
		return nil
	}
	return Form{{monomial{}, x}}
}

func variable(v Variable) Form { return Form{{monomial{one, v}, 1}} }

// extent is a size as a Form; ok is false where it depends on more than batch, length and past.
func extent(e dim.Extent) (f Form, ok bool) {
	f = number(float64(e.One))
	for _, p := range []part{{monomial{one, Batch}, float64(e.B)}, {monomial{one, Length}, float64(e.L)}, {monomial{one, Past}, float64(e.P)},
		{monomial{Batch, Length}, float64(e.BL)}, {monomial{Batch, Past}, float64(e.BP)}} {
		if p.factor != 0 {
			f = f.plus(Form{p}, 1)
		}
	}
	return f, e.S == 0 && e.BS == 0
}

// plus returns f + factor·g.
func (f Form) plus(g Form, factor float64) Form {
	out := slices.Clone(f)
	for _, p := range g {
		i, found := slices.BinarySearchFunc(out, p, func(a, b part) int { return slices.Compare(a.of[:], b.of[:]) })
		if !found {
			out = slices.Insert(out, i, part{of: p.of})
		}
		out[i].factor += factor * p.factor
		if out[i].factor == 0 {
			out = slices.Delete(out, i, i+1)
		}
	}
	return out
}

// times returns f·g; ok is false where that has a product of three variables.
func (f Form) times(g Form) (out Form, ok bool) {
	for _, a := range f {
		for _, b := range g {
			m := []Variable{a.of[0], a.of[1], b.of[0], b.of[1]}
			slices.Sort(m)
			if m[1] != one {
				return nil, false
			}
			out = out.plus(Form{{monomial{m[2], m[3]}, a.factor * b.factor}}, 1)
		}
	}
	return out, true
}

// constant returns the value of a form without variables.
func (f Form) constant() (x float64, ok bool) {
	if len(f) == 0 {
		return 0, true
	}
	return f[0].factor, len(f) == 1 && f[0].of == monomial{}
}

// rest splits the constant off.
func (f Form) rest() (variables Form, constant float64) {
	if len(f) > 0 && f[0].of == (monomial{}) {
		return f[1:], f[0].factor
	}
	return f, 0
}

// most is the largest number that is added to places and sizes. The sum of it and of four numbers of tokens below 2²¹ is
// exact in float32.
const most = 1 << 23

// exact reports whether every type of numbers that is read here holds a sum of places and sizes: four at most, and
// products of two in integers alone.
func (f Form) exact(integer bool) bool {
	variables, constant := f.rest()
	count := 0.0
	for _, p := range variables {
		if count += math.Abs(p.factor); p.factor != math.Trunc(p.factor) || p.of[0] != one && !integer {
			return false
		}
	}
	return count <= 4 && constant == math.Trunc(constant) && math.Abs(constant) <= most
}

// reads reports whether any variable of f is one for which of is true.
func (f Form) reads(of func(Variable) bool) bool {
	return slices.ContainsFunc(f, func(p part) bool {
		return p.of[0] != one && of(p.of[0]) || p.of[1] != one && of(p.of[1])
	})
}

func equal(f, g Form) bool { return slices.Equal(f, g) }
