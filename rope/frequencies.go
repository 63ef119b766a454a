package rope

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// ulp is the relative size of half a unit in the last place of float32.
const ulp = 1.0 / (1 << 24)

// Base returns the base θ for which |Frequencies[i]| = θ^(−2i/n), n = RotaryDim,
// within the rounding of exporters' float32 arithmetic, as the shortest decimal
// with the same float32 value. Pairs of frequency 0, which do not rotate, are
// ignored. ok is false if there is no such base (the frequencies are already
// scaled, or come from lists), or if fewer than two pairs rotate, which fits any
// base.
func (e Encoding) Base() (theta float64, ok bool) {
	theta, err := e.base()
	return theta, err == nil
}

// base is Base with the reason for the refusal.
func (e Encoding) base() (float64, error) {
	pairs := float64(len(e.Frequencies))
	if e.Turning() < 2 {
		return 0, errors.New("fewer than two channel pairs rotate, so the base cannot be determined")
	}
	e = e.WithSenses(e.Senses())
	if e.Precision != Float32 {
		return e.roundedBase()
	}
	// ln ω_i = −(i/pairs)·ln θ: least squares through the origin.
	var up, down float64
	for i, omega := range e.Frequencies {
		if omega == 0 {
			continue
		}
		if !(omega > 0) {
			return 0, fmt.Errorf("the frequency %g of pair %d is not positive", omega, i)
		}
		up -= float64(i) * math.Log(omega)
		down += float64(i) * float64(i)
	}
	fit := math.Exp(pairs * up / down)
	if !(fit > 1) || math.IsInf(fit, 0) {
		return 0, errors.New("the frequencies do not fall from pair to pair")
	}
	// Bases are mostly round numbers, and the fit is only as good as float32.
	for digits := range 8 {
		if short := roundDigits(fit, digits); math.Abs(short-fit) < fit*8*ulp && e.misfit(short) < 0 {
			return short, nil
		}
	}
	i := e.misfit(fit)
	if i < 0 {
		return fit, nil
	}
	return 0, fmt.Errorf("they are not the powers of one base: pair %d has %g, the nearest base %.6g gives %g",
		i, e.Frequencies[i], fit, math.Pow(fit, -float64(i)/pairs))
}

// misfit returns the first pair whose frequency differs from the base's by
// more than float32 rounding, or −1.
//
// Exporters compute 1/base^(2i/n) in float32. Rounding the exponent moves the
// result by |ln ω| half units, the power, the reciprocal and the measurement by
// about two each.
func (e Encoding) misfit(base float64) int {
	for i, omega := range e.Frequencies {
		if omega == 0 {
			continue
		}
		logOmega := -float64(i) / float64(len(e.Frequencies)) * math.Log(base)
		want := math.Exp(logOmega)
		tolerance := want * ulp * (6 - logOmega)
		if e.Precision != Float32 {
			tolerance += e.Precision.Spacing(want) / 2
		}
		if math.Abs(omega-want) > tolerance {
			return i
		}
	}
	return -1
}

// roundedBase returns the shortest decimal whose powers, rounded to the type
// that the frequencies are kept in, are the frequencies.
func (e Encoding) roundedBase() (float64, error) {
	low, high := 1.0, math.Inf(1)
	pairs := float64(len(e.Frequencies))
	for i, omega := range e.Frequencies {
		if i == 0 || omega == 0 {
			continue
		}
		if !(omega > 0) {
			return 0, fmt.Errorf("the frequency %g of pair %d is not positive", omega, i)
		}
		half := e.Precision.Spacing(omega) / 2
		low = math.Max(low, math.Pow(omega+half, -pairs/float64(i)))
		if omega > half {
			high = math.Min(high, math.Pow(omega-half, -pairs/float64(i)))
		}
	}
	if !math.IsInf(high, 1) && low < high {
		for digits := range 8 {
			if short := roundDigits((low+high)/2, digits); short >= low && short <= high && e.misfit(short) < 0 {
				return short, nil
			}
		}
	}
	return 0, errors.New("they are not the rounded powers of one base")
}

// roundDigits keeps one digit before the decimal point of x's scientific form
// and digits after it.
func roundDigits(x float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits, 64), 64)
	if err != nil {
		return x
	}
	return r
}

// geometric returns the frequencies base^(−2i/n) as transformers computes them:
// base, exponent, power and reciprocal each rounded to float32.
func geometric(base float64, pairs int) []float64 {
	frequencies := make([]float64, pairs)
	for i := range frequencies {
		exponent := float32(2*i) / float32(2*pairs)
		power := float32(math.Pow(float64(float32(base)), float64(exponent)))
		frequencies[i] = float64(1 / power)
	}
	return frequencies
}

// powers returns geometric's frequencies of a base for as many pairs as e has. Those that do not
// turn stay so, unless none does.
func (e Encoding) powers(base float64) []float64 {
	frequencies := geometric(base, len(e.Frequencies))
	for i, omega := range e.Frequencies {
		if omega == 0 && e.Turning() > 0 {
			frequencies[i] = 0
		}
	}
	return frequencies
}

// toFloat32 rounds to the float32 numbers that the op takes, so that what is
// computed from the value is what the op computes.
func toFloat32(frequencies []float64) []float64 {
	rounded := slices.Clone(frequencies)
	for i, omega := range rounded {
		rounded[i] = float64(float32(omega))
	}
	return rounded
}

// Aliases returns the first pair that turns by more than π per position, if
// there is one. On integer positions its frequency cannot be told from the one
// 2π away, so a measured value may be either, and a method that scales it
// would scale the wrong one.
func (e Encoding) Aliases() (pair int, ok bool) {
	for i, omega := range e.Frequencies {
		if math.Abs(omega) > math.Pi {
			return i, true
		}
	}
	return 0, false
}
