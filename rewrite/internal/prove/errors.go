package prove

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// trialErrors holds the errors of a trial by result: output, present key, present value
// and paddedOutput.
type trialErrors [resultKinds]ResultErrors

// ResultErrors holds the errors of one result against float64: the largest, and the sums
// of their squares.
type ResultErrors struct {
	Original, Op               float64 // the largest error of each
	originalSquares, opSquares float64
	plain, plainSquares        float64 // of a plain implementation; 0 where none was run
	Largest                    float64 // the largest element of the result in float64
	Count                      float64 // how many elements were compared
}

// Add compares the elements of one result for which counts says true. Without an original
// (a zero Tensor) its error is taken as 0. It returns an error for shapes that differ and
// for NaN.
func (e *ResultErrors) Add(original, double, op engine.Tensor, counts func(i int64) bool) error {
	values, err := valuesOf(original, double, op)
	if err != nil {
		return err
	}
	return e.add(values, counts)
}

// resultValues holds the elements of one result.
type resultValues struct{ original, double, op []float64 }

// valuesOf returns the elements of a result, and an error for shapes that differ.
func valuesOf(original, double, op engine.Tensor) (v resultValues, _ error) {
	if original.Dims == nil {
		original = double
	}
	for _, t := range []engine.Tensor{original, op} {
		if !slices.Equal(t.Dims, double.Dims) {
			return v, fmt.Errorf("its shape is %v, expected %v", t.Dims, double.Dims)
		}
	}
	return resultValues{original.Values(), double.Values(), op.Values()}, nil
}

// add does what Add does.
func (e *ResultErrors) add(values resultValues, counts func(i int64) bool) error {
	x, y, z := values.original, values.double, values.op
	for i := range y {
		if !counts(int64(i)) {
			continue
		}
		if math.IsNaN(x[i]) || math.IsNaN(y[i]) || math.IsNaN(z[i]) {
			return fmt.Errorf("element %d is %g in the original, %g in float64 and %g in the op", i, x[i], y[i], z[i])
		}
		original, op := x[i]-y[i], z[i]-y[i]
		e.Original = max(e.Original, math.Abs(original))
		e.Op = max(e.Op, math.Abs(op))
		e.originalSquares += original * original
		e.opSquares += op * op
		e.Largest = max(e.Largest, math.Abs(y[i]))
		e.Count++
	}
	return nil
}

// takeOriginal sets the errors of the original, which did not run in this trial, to those
// of another trial.
func (e *ResultErrors) takeOriginal(from ResultErrors) {
	e.Original = from.Original
	if from.Count > 0 {
		e.originalSquares = from.originalSquares * e.Count / from.Count
	}
}

// merge takes up the largest errors of another trial.
func (e *ResultErrors) merge(other ResultErrors) {
	e.Original = math.Max(e.Original, other.Original)
	e.Op = math.Max(e.Op, other.Op)
	e.plain = math.Max(e.plain, other.plain)
	e.Largest = math.Max(e.Largest, other.Largest)
}

// Judge applies the rule for one trial. As root mean square, which hardly varies from draw
// to draw, the op's error may be twice that of the original or of a plain implementation.
// A quarter of a unit in the last place of the largest element is always allowed. The
// original's own error must be at most limit, which is what its arithmetic explains.
// epsilon is that of the site's element type.
func (e ResultErrors) Judge(limit, epsilon float64) error {
	if e.Original > limit {
		return fmt.Errorf("the original itself is off by %.3g from float64, more than the %.3g that its rounding explains", e.Original, limit)
	}
	if e.Count == 0 {
		return nil
	}
	rms := func(squares float64) float64 { return math.Sqrt(squares / e.Count) }
	if allowed := max(2*rms(e.originalSquares), 2*rms(e.plainSquares), e.Largest*epsilon/4); !(rms(e.opSquares) <= allowed) {
		return fmt.Errorf("the op is off by %.3g (root mean square) from the original in float64; expected at most %.3g, twice the error of the original or of a plain implementation",
			rms(e.opSquares), allowed)
	}
	return nil
}

// JudgeLargest applies the rule for the largest error of several trials, so that one wrong
// element among many is seen: it may be twice that of the original or of a plain
// implementation. One unit in the last place of the largest element is always allowed, as
// twice the half unit by which any implementation rounds its result.
func (e ResultErrors) JudgeLargest(epsilon float64) error {
	if allowed := e.largestAllowed(epsilon); !(e.Op <= allowed) {
		return fmt.Errorf("the op is off by %.3g from the original in float64; expected at most %.3g, twice the error of the original or of a plain implementation", e.Op, allowed)
	}
	return nil
}

func (e ResultErrors) largestAllowed(epsilon float64) float64 {
	return max(2*e.Original, 2*e.plain, e.Largest*epsilon)
}

// MayBeLuck reports whether a largest error that JudgeLargest refuses is so near to what
// is allowed that more samples may show as much of the original.
func (e ResultErrors) MayBeLuck(epsilon float64) bool { return e.Op <= 2*e.largestAllowed(epsilon) }
