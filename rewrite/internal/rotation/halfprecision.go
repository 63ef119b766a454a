package rotation

import (
	"context"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Cosines and sines in 16 bits are rounded so much that frequencies are measured with an
// error: half a unit in the last place of a cosine is 2.4e-4 in float16. The error of a
// frequency is that, divided by the largest position. Where angles are computed, this
// leaves all digits; a table of 2048 rows leaves slow pairs with a relative error of some
// 1e-3. Two hypotheses are then tried: that the frequencies are float16 numbers, as in a
// model that was converted as a whole, and that they are the powers of a base with few
// digits. A hypothesis is accepted only if every cosine and sine that is evaluated agrees
// with it to the last place of the type. Otherwise the measured frequencies are kept.

// noise returns the largest error of each measured frequency; top is the largest position
// that it was measured at.
func noise(frequencies []float64, p rope.Precision, top int64) []float64 {
	out := make([]float64, len(frequencies))
	for i, w := range frequencies {
		// Of small angles the sine has the type's relative accuracy.
		angle := p.Epsilon() * math.Min(1, 2*math.Abs(w)*float64(top))
		out[i] = angle/float64(top) + rope.Float32.Spacing(w)/2
	}
	return out
}

// explained returns fit with the frequencies of the first hypothesis that agrees with the
// branch, or with the measured ones and their error.
func (r *Rotator) explained(ctx context.Context, fit *Matrix, top int64) (*Matrix, error) {
	p := r.Precision
	measured := fit.Encoding.Frequencies
	off := noise(measured, p, top)
	r.strict = true
	for _, hypothesis := range []rope.Encoding{converted(fit.Encoding, off, p), powers(fit.Encoding, off)} {
		if hypothesis.Frequencies == nil {
			continue
		}
		supposed := *fit
		supposed.Encoding = hypothesis
		switch err := r.verify(ctx, &supposed, fit.Limit); {
		case err == nil:
			return &supposed, nil
		case bisect.Ended(err):
			return nil, err
		}
	}
	r.strict = false
	for i, w := range measured {
		if w == 0 {
			continue // it does not turn
		}
		fit.Unknown = math.Max(fit.Unknown, off[i]/math.Abs(w))
	}
	return fit, r.verify(ctx, fit, fit.Limit)
}

// converted is the hypothesis that the frequencies are numbers of the 16-bit type p. It
// is empty where they are not, or where their errors off are so large that others could
// be as close by chance.
func converted(e rope.Encoding, off []float64, p rope.Precision) rope.Encoding {
	e.Frequencies = slices.Clone(e.Frequencies)
	chance := 1.0
	for i, w := range e.Frequencies {
		if w == 0 {
			continue // it does not turn
		}
		near := p.Round(w)
		away := math.Abs(near - w)
		if away > off[i] || p.Spacing(w)-away <= off[i] { // or the next number of the type is as likely
			return rope.Encoding{}
		}
		chance *= math.Min(2*off[i]/p.Spacing(w), 1)
		e.Frequencies[i] = near
	}
	if chance > 1e-6 {
		return rope.Encoding{}
	}
	e.Precision = p
	return e
}

// powers is the hypothesis that the frequencies are base^(−i/pairs), with the base of
// fewest digits that the errors off allow, and those of exporters' float32 powers.
// Frequencies that are known to float32 accuracy are kept.
func powers(e rope.Encoding, off []float64) rope.Encoding {
	senses := e.Senses()
	e = e.WithSenses(senses)
	pairs := float64(len(e.Frequencies))
	allowed := make([]float64, len(off))
	low, high := 1.0, math.Inf(1)
	for i, w := range e.Frequencies {
		allowed[i] = off[i] + 4*rope.Float32.Spacing(w)
		if i == 0 || !(w > allowed[i]) {
			continue
		}
		low = math.Max(low, math.Pow(w+allowed[i], -pairs/float64(i)))
		high = math.Min(high, math.Pow(w-allowed[i], -pairs/float64(i)))
	}
	if !(low < high) || math.IsInf(high, 1) {
		return rope.Encoding{}
	}
	base := bisect.Shortest(low, high)
	for i, w := range e.Frequencies {
		if w == 0 {
			continue
		}
		want := math.Pow(base, -float64(i)/pairs)
		if math.Abs(w-want) > allowed[i] {
			return rope.Encoding{}
		}
		if off[i] > rope.Float32.Spacing(want) {
			e.Frequencies[i] = rope.Float32.Round(want)
		}
	}
	return e.WithSenses(senses)
}
