package rotation

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// smallWidth is how many tokens, cached and new ones, the longest of the small calls has. Every number of cached and
// of new tokens up to it is tried: a rotation may be another one at one length.
const smallWidth = 8

// NotRun says that ONNX Runtime does not evaluate a call.
type NotRun struct{ Why error }

func (e NotRun) Error() string { return e.Why.Error() }
func (e NotRun) Unwrap() error { return e.Why }

// SmallCalls compares a rotation that was measured with every call of few tokens, and returns how many there are. r
// evaluates the graph itself, without tables. Frequencies that change with the length of a call do so beyond
// trained tokens.
func (r *Rotator) SmallCalls(ctx context.Context, fit *Matrix, trained int64) (calls int64, err error) {
	own := *r
	r = &own
	r.order, r.factors = fit.Order, fit.Factors
	for total := int64(1); total <= smallWidth; total++ {
		for length := int64(1); length <= total; length++ {
			pt := dim.Point{B: 2, L: length, P: total - length}
			if pt.P > 0 && !r.Loaded.Table.Past || r.Loaded.Table.Within(pt) != pt {
				continue
			}
			r.past = pt.P
			for _, first := range r.firsts(pt, fit.Limit) {
				positions := make([]int64, length)
				for i := range positions {
					positions[i] = first + int64(i)
				}
				if err := r.compare(ctx, fit.in(positions, trained), positions); err != nil {
					return calls, fmt.Errorf("in a call of %d tokens after %d cached ones, %w", length, pt.P, err)
				}
				calls++
			}
		}
	}
	return calls, nil
}

// firsts are the first positions with which a call is tried: the number of cached tokens and, where an input tells
// positions, another number.
func (r *Rotator) firsts(pt dim.Point, limit int64) []int64 {
	list := []int64{pt.P}
	if r.Position != nil {
		list = append(list, []int64{0, 1, 5, 1000}[(pt.L+pt.P)%4])
	}
	for len(list) > 0 && list[len(list)-1]+pt.L-1 > limit {
		list = list[:len(list)-1]
	}
	return list
}

// in is the rotation of a call with these positions.
func (m *Matrix) in(positions []int64, trained int64) *Matrix {
	l := m.Encoding.LengthDependent
	if l.Long == nil || positions[len(positions)-1]+1 <= trained {
		return m
	}
	long := *m
	long.Encoding.Frequencies = l.Long
	return &long
}

// Runs reports whether an error is about what a call gives, and not that it was not evaluated.
func Runs(err error) bool { return !errors.As(err, new(NotRun)) }
