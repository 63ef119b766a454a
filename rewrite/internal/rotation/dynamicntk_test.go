package rotation

import (
	"math"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Frequencies of calls up to 100,000 tokens, rounded as float32 does it, are those of dynamic
// NTK; what differs from it by more, in any of its numbers or in one pair of one call, is not.
func TestCallErrors(t *testing.T) {
	const trained, factor, base = 16, 4, 10_000
	for _, pairs := range []int{4, 8, 32, 48, 64} {
		n := float64(pairs)
		e := rope.Encoding{LengthDependent: rope.LengthDependent{Trained: trained, NTK: factor}}
		for i := range pairs {
			e.Frequencies = append(e.Frequencies, float64(float32(math.Pow(base, -float64(i)/n))))
		}
		by := func(base, factor, exponent float64) func(length int64, i int) float64 {
			return func(length int64, i int) float64 {
				x := factor*float64(length)/trained - (factor - 1)
				return math.Pow(base*math.Pow(x, exponent), -float64(i)/n)
			}
		}
		right := by(base, factor, n/(n-1))
		for _, c := range []struct {
			name    string
			model   func(length int64, i int) float64
			op      rope.Encoding
			refused string
		}{
			{"rounded once", right, e, ""},
			{"the exponent rounded", by(base, factor, float64(float32(n/(n-1)))), e, ""},
			{"another exponent", by(base, factor, n/(n-1)+2e-6), e, "the model's frequency"},
			{"no exponent", by(base, factor, 1), e, "the model's frequency"},
			{"another factor", by(base, factor+1e-4, n/(n-1)), e, "the model's frequency"},
			{"another base", by(base+0.1, factor, n/(n-1)), e, "the model's frequency"},
			{"one pair of one call", func(length int64, i int) float64 {
				if length == 1031 && i == pairs-1 {
					return right(length, i) * (1 + 3e-6)
				}
				return right(length, i)
			}, e, "the model's frequency"},
			{"another op", right, otherFactor(e), "the op's frequency"},
		} {
			errs, err := NewCallErrors(e)
			if err != nil {
				t.Fatal(err)
			}
			errs.encoding = c.op
			for _, length := range []int64{17, 18, 31, 64, 200, 1031, 9000, 65_000, 100_000} {
				model := make([]float64, pairs)
				for i := range model {
					model[i] = float64(float32(c.model(length, i)))
				}
				errs.Add(length, model)
			}
			if err := errs.Judge(); c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%d pairs, %s: %v", pairs, c.name, err)
			}
		}
		// For docs/results/coverage.md: how far the angles of the last token are off from the formula, as
		// root mean square over pairs and calls.
		errs, err := NewCallErrors(e)
		if err != nil {
			t.Fatal(err)
		}
		var plain, op float64
		for length := int64(99_001); length <= 100_000; length++ {
			rounded, own := errs.formula.plain(length), e.At(length).Frequencies
			for i, exact := range errs.formula.exact(length) {
				angle := float64(length - 1)
				plain += math.Pow(angle*(rounded[i]-exact), 2)
				op += math.Pow(angle*(own[i]-exact), 2)
			}
		}
		t.Logf("%d pairs: at positions of 100,000 angles are off by %.1e in plain float32, by %.1e in the op", pairs, math.Sqrt(plain/n/1000), math.Sqrt(op/n/1000))
	}
}

func otherFactor(e rope.Encoding) rope.Encoding {
	e.LengthDependent.NTK *= 1 + 1e-5
	return e
}
