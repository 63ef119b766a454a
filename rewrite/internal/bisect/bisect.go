package bisect

import (
	"context"
	"errors"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
)

// Farthest returns f's result for the largest length up to top for which f does not fail:
// a table in the graph has an end. If f fails for all, the error is that for top.
func Farthest[T any](top int64, f func(length int64) (T, error)) (T, error) {
	best, err := f(top)
	if err == nil || Ended(err) {
		return best, err
	}
	most, broken := Largest(0, top, func(length int64) (bool, error) {
		v, err := f(length)
		switch {
		case Ended(err):
			return false, err
		case err != nil:
			return false, nil
		}
		best = v
		return true, nil
	})
	switch {
	case broken != nil:
		return best, broken
	case most == 0:
		return best, err
	}
	return best, nil
}

// Largest returns the last number between low and high for which holds is true. It must
// be true for low, false for high, and change once.
func Largest(low, high int64, holds func(n int64) (bool, error)) (int64, error) {
	for high-low > 1 {
		middle := (low + high) / 2
		is, err := holds(middle)
		switch {
		case err != nil:
			return low, err
		case is:
			low = middle
		default:
			high = middle
		}
	}
	return low, nil
}

// Ended reports whether the error says that an evaluation was stopped or not begun: such
// an error tells nothing about the graph.
func Ended(err error) bool {
	return errors.Is(err, bound.ErrTooLarge) || errors.Is(err, engine.ErrTimeout) || errors.Is(err, engine.ErrDied) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// OnlyEnded returns an error that ends everything, and nil for one that says something of the graph alone.
func OnlyEnded(err error) error {
	if err != nil && Ended(err) {
		return err
	}
	return nil
}

// Shortest returns the number between low and high with the fewest digits.
func Shortest(low, high float64) float64 {
	middle := (low + high) / 2
	for digits := range 16 {
		x, err := strconv.ParseFloat(strconv.FormatFloat(middle, 'e', digits, 64), 64)
		if err == nil && x >= low && x <= high {
			return x
		}
	}
	return middle
}
