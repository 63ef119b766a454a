package rotation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Dynamic NTK computes frequencies in each call, by a formula whose numbers (an exponent of
// d/(d − 2), powers) float32 rounds. So what the graph has in a call is not what it means: that
// is the formula, and both the graph's frequencies and the op's are rounded values of it. Both
// are held to the rule for rounded values: they may be off from the formula in float64 by at
// most twice what a plain float32 implementation of it is off by.

// OtherFormula says why length-dependent frequencies are not dynamic NTK.
type OtherFormula struct{ error }

// Unwrap returns the reason.
func (o OtherFormula) Unwrap() error { return o.error }

// dynamicNTK returns the factor with which the frequencies beyond a trained length follow the
// formula: the shortest decimal with which the rule holds at many lengths.
func (c *Calls) dynamicNTK(ctx context.Context, own rope.Encoding, trained int64) (float64, error) {
	found := map[int64][]float64{} // frequencies by length
	for last := trained; last <= c.limit; last = next(last) {
		some, err := c.Frequencies(ctx, last)
		if err != nil {
			return 0, err
		}
		found[last+1] = some
	}
	// In calls of length L the slowest pair turns 1 + α·(L/trained − 1) times slower.
	var factors []float64
	pair := len(own.Frequencies) - 1
	for length, frequencies := range found {
		slower := own.Frequencies[pair] / frequencies[pair]
		factors = append(factors, (slower-1)/(float64(length)/float64(trained)-1))
	}
	slices.Sort(factors)
	middle := factors[len(factors)/2]
	if !(middle > 0) || math.IsInf(middle, 0) {
		return 0, OtherFormula{errors.New("the slowest pair does not rotate more slowly in longer calls")}
	}
	var why error
	for digits := range 9 { // of which the last is as good as float32
		factor, err := strconv.ParseFloat(strconv.FormatFloat(middle, 'e', digits, 64), 64)
		if err != nil {
			return 0, err
		}
		e := own
		e.LengthDependent = rope.LengthDependent{Trained: trained, NTK: float64(float32(factor))}
		errs, err := NewCallErrors(e)
		if err != nil {
			return 0, OtherFormula{err}
		}
		for length, frequencies := range found {
			errs.Add(length, frequencies)
		}
		if why = errs.Judge(); why == nil && factor < 1 {
			why = fmt.Errorf("its factor would be %g, and the op takes 1 or more", factor)
			break
		}
		if why == nil {
			return e.LengthDependent.NTK, nil
		}
	}
	return 0, OtherFormula{why}
}

// formula is dynamic NTK: frequency i of n pairs is b^(−i/n) with b = base·x^(n/(n − 1)) and
// x = α·L/trained − (α − 1).
type formula struct {
	base, factor, trained float64
	senses                []float64 // of the pairs: which way they rotate
}

// exact are the frequencies of a call that reaches a length.
func (f formula) exact(length int64) []float64 {
	n := float64(len(f.senses))
	base := f.base * math.Pow(f.factor*float64(length)/f.trained-(f.factor-1), n/(n-1))
	out := slices.Clone(f.senses)
	for i := range out {
		out[i] *= math.Pow(base, -float64(i)/n)
	}
	return out
}

// plain are the same by an implementation in float32, which rounds every number and every
// result: the order of operations is that of transformers.
func (f formula) plain(length int64) []float64 {
	power := func(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) }
	n := float32(len(f.senses))
	stretch := float32(f.factor) * float32(length) / float32(f.trained)
	base := float32(f.base) * power(stretch-float32(f.factor-1), n/(n-1))
	out := slices.Clone(f.senses)
	for i := range out {
		out[i] *= float64(1 / power(base, float32(i)/n))
	}
	return out
}

// CallErrors holds how far frequencies are off from the formula, relative to themselves: of
// each pair the largest of some calls.
type CallErrors struct {
	encoding            rope.Encoding
	formula             formula
	original, op, plain []float64
}

// NewCallErrors returns them for an encoding with dynamic NTK.
func NewCallErrors(e rope.Encoding) (*CallErrors, error) {
	base, ok := e.Base()
	if !ok {
		return nil, errors.New("the frequencies of short calls are not the powers of one base, as dynamic NTK needs")
	}
	n := len(e.Frequencies)
	f := formula{base: base, factor: e.LengthDependent.NTK, trained: float64(e.LengthDependent.Trained), senses: e.Senses()}
	return &CallErrors{e, f, make([]float64, n), make([]float64, n), make([]float64, n)}, nil
}

// Add takes up the frequencies of the original in a call that reaches a length.
func (c *CallErrors) Add(length int64, original []float64) {
	op, plain := c.encoding.At(length).Frequencies, c.formula.plain(length)
	for i, want := range c.formula.exact(length) {
		off := func(x float64) float64 { return math.Abs(x-want) / math.Abs(want) }
		c.original[i] = max(c.original[i], off(original[i]))
		c.op[i] = max(c.op[i], off(op[i]))
		c.plain[i] = max(c.plain[i], off(plain[i]))
	}
}

// Judge applies the rule to each pair. A unit in the last place is always allowed.
func (c *CallErrors) Judge() error {
	for i, plain := range c.plain {
		allowed := max(2*plain, ir.Float32eps)
		for _, of := range []struct {
			what string
			off  float64
		}{{"the model's", c.original[i]}, {"the op's", c.op[i]}} {
			if !(of.off <= allowed) {
				return fmt.Errorf("with its factor %.9g beyond %g tokens %s frequency of pair %d is off by %.3g of itself; expected at most %.3g, twice the error of a plain implementation",
					c.formula.factor, c.formula.trained, of.what, i, of.off, allowed)
			}
		}
	}
	return nil
}

// Largest returns the largest errors of the original's frequencies and of the op's.
func (c *CallErrors) Largest() (original, op float64) {
	return slices.Max(c.original), slices.Max(c.op)
}
