package control

import (
	"iter"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// Width is how many tokens, cached and new ones, the longest of the small calls has.
const Width = 8

// Calls yields every call of up to so many tokens, the shortest first: each number of cached and of new tokens. Their
// batch is left to the caller.
func Calls(width int64) iter.Seq[dim.Point] {
	return func(yield func(dim.Point) bool) {
		for total := int64(1); total <= width; total++ {
			for length := int64(1); length <= total; length++ {
				if !yield(dim.Point{L: length, P: total - length}) {
					return
				}
			}
		}
	}
}

// NotRun says that ONNX Runtime does not evaluate a call, so that nothing was compared.
type NotRun struct{ Why error }

func (e NotRun) Error() string { return e.Why.Error() }
func (e NotRun) Unwrap() error { return e.Why }
