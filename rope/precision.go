package rope

import "math"

// Precision is a binary floating-point type.
type Precision uint8

const (
	Float32  Precision = iota
	Float16            // 11 significant bits, exponents from −14
	BFloat16           // 8 significant bits, float32's exponents
)

// bits returns the significant bits, the leading one included, and the exponent
// of the smallest normal number.
func (p Precision) bits() (significant, lowest int) {
	switch p {
	case Float16:
		return 11, -14
	case BFloat16:
		return 8, -126
	}
	return 24, -126
}

// Epsilon returns the distance from 1 to the next larger number.
func (p Precision) Epsilon() float64 {
	significant, _ := p.bits()
	return math.Ldexp(1, 1-significant)
}

// Spacing returns the distance between the numbers of the type around x.
func (p Precision) Spacing(x float64) float64 {
	significant, lowest := p.bits()
	_, exponent := math.Frexp(x) // |x| in [2^(exponent−1), 2^exponent)
	return math.Ldexp(1, max(exponent-1, lowest)-significant+1)
}

// Round returns the number of the type nearest to x, of two equally near ones
// the even one. Numbers beyond the largest are not made infinite.
func (p Precision) Round(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	spacing := p.Spacing(x)
	return math.RoundToEven(x/spacing) * spacing
}
