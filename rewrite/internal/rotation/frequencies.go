package rotation

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Cosines and sines in 16 bits show frequencies through noise: half a unit in
// the last place of a cosine is 2.4e-4 in float16. The largest position divides
// it, so that computed angles still give all digits, but a table of 2048 rows
// leaves slow pairs known to some 1e-3 only. What the frequencies are is then a
// matter of hypotheses: that they are float16 numbers, as in a model that was
// converted as a whole, or that they are the powers of a short base. One is
// accepted only where it explains every cosine and sine that is looked at to
// the last place of the type; else they stay as measured.

// noise bounds how far each measured frequency may be off, top being the largest
// power of two among the positions that were looked at.
func noise(frequencies []float64, p rope.Precision, top int64) []float64 {
	out := make([]float64, len(frequencies))
	for i, w := range frequencies {
		// Of small angles the sine has the type's relative accuracy.
		angle := p.Epsilon() * math.Min(1, 2*math.Abs(w)*float64(top))
		out[i] = angle/float64(top) + rope.Float32.Spacing(w)/2
	}
	return out
}

// explained returns the first hypothesis about the frequencies of a branch in 16
// bits that explains what it does, or the measured ones and how well they are known.
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
		case Ended(err):
			return nil, err
		}
	}
	r.strict = false
	for i, w := range measured {
		fit.Unknown = math.Max(fit.Unknown, off[i]/math.Abs(w))
	}
	return fit, r.verify(ctx, fit, fit.Limit)
}

// converted supposes that the frequencies are numbers of the type. The
// hypothesis is empty where they are not, or are not known well enough to tell:
// that others came as near by chance must be out of the question.
func converted(e rope.Encoding, off []float64, p rope.Precision) rope.Encoding {
	e.Frequencies = slices.Clone(e.Frequencies)
	chance := 1.0
	for i, w := range e.Frequencies {
		near := p.Round(w)
		away := math.Abs(near - w)
		if away > off[i] || p.Spacing(w)-away <= off[i] { // the next number may be meant
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

// powers supposes that the frequencies are base^(−i/pairs) with the shortest
// base that the measurement allows. Those that are known to float32 stay.
func powers(e rope.Encoding, off []float64) rope.Encoding {
	senses := e.Senses()
	e = e.WithSenses(senses)
	pairs := float64(len(e.Frequencies))
	low, high := 1.0, math.Inf(1)
	for i, w := range e.Frequencies {
		if i == 0 || !(w > off[i]) {
			continue
		}
		low = math.Max(low, math.Pow(w+off[i], -pairs/float64(i)))
		high = math.Min(high, math.Pow(w-off[i], -pairs/float64(i)))
	}
	if !(low < high) || math.IsInf(high, 1) {
		return rope.Encoding{}
	}
	base := Shortest(low, high)
	for i, w := range e.Frequencies {
		want := math.Pow(base, -float64(i)/pairs)
		if math.Abs(w-want) > off[i]+4*rope.Float32.Spacing(want) {
			return rope.Encoding{}
		}
		if off[i] > rope.Float32.Spacing(want) {
			e.Frequencies[i] = rope.Float32.Round(want)
		}
	}
	return e.WithSenses(senses)
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
