package tokenizer

import (
	"math"
	"strconv"
	"strings"
)

// parseScore reads a number of JSON as the library does that Hugging Face's
// tokenizers use (serde_json, without float_roundtrip): its digits as an
// integer, which is multiplied or divided by a power of ten. That can be one
// unit in the last place off, and decides between tokens of equal score.
func parseScore(text string) float64 {
	number, negative := strings.CutPrefix(text, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(number), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, err := strconv.Atoi(power)
	if power != "" && err != nil {
		exponent = 100000
		if strings.HasPrefix(power, "-") {
			exponent = -exponent
		}
	}
	var digits uint64
	full := false // more digits do not fit, and are left out
	for i, c := range []byte(whole + fraction) {
		d := uint64(c - '0')
		full = full || digits > (math.MaxUint64-d)/10
		behind := i >= len(whole)
		switch {
		case !full:
			digits = digits*10 + d
			if behind {
				exponent--
			}
		case !behind:
			exponent++
		}
	}
	value := scale(float64(digits), exponent)
	if negative {
		return -value
	}
	return value
}

// scale multiplies by a power of ten.
func scale(f float64, exponent int) float64 {
	for exponent < -308 && f != 0 {
		f /= 1e308
		exponent += 308
	}
	switch {
	case f == 0:
		return 0
	case exponent > 308:
		return math.Inf(1)
	case exponent < 0:
		return f / math.Pow10(-exponent)
	}
	return f * math.Pow10(exponent)
}
