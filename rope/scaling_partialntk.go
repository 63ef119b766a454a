package rope

import (
	"errors"
	"math"
)

// partialNTK blends three series: interpolated where pairs turn less than
// three quarters of a turn within the trained context, NTK-aware between, and
// untouched where they turn more than sixteen times.
var partialNTK = Method{
	Axis:   ScalingAxis,
	Part:   FrequencyPart,
	Name:   "partial-ntk",
	Doc:    "Blends linear interpolation, NTK-aware scaling and the original frequencies by how often a pair turns within the trained context.",
	Source: "bloc97's NTK-by-parts code of 2023, as surveyed in Zhao et al., arXiv:2312.17044",
	Formula: "ω = (θ_i/factor)(1 − m) + θ_i·factor^(−2i/(n−2))·m with m = (1 − ρ(1.25, 0.75))·ntk_factor; " +
		"θ'_i = ω(1 − m) + θ_i·m with m = (1 − ρ(16, 2))·extrapolation_factor; ρ(a, b) is yarn's ramp from a to b turns",
	Params: []Param{
		paramFactor,
		paramOriginal,
		{Name: "ntk_factor", Kind: Real, Default: Number(1), Rule: share, Doc: "weight of the NTK-aware frequencies"},
		{Name: "extrapolation_factor", Kind: Real, Default: Number(1), Rule: share, Doc: "weight of the original frequencies"},
		paramTheta,
		paramPartial,
	},
	apply: func(e edit) (Attention, []string, error) {
		original, err := e.trained()
		if err != nil {
			return Attention{}, nil, err
		}
		frequencies, warnings, err := e.source()
		if err != nil {
			return Attention{}, nil, err
		}
		n := e.Encoding.RotaryDim()
		if n < 4 {
			return Attention{}, nil, errors.New("the method needs at least two channel pairs, and the graph rotates one")
		}
		factor, more, err := e.factor(original)
		if err != nil {
			return Attention{}, nil, err
		}
		warnings = append(warnings, more...)
		outer, more, err := e.blend(original, 1.25, 0.75)
		if err != nil {
			return Attention{}, nil, err
		}
		warnings = append(warnings, more...)
		inner, more, err := e.blend(original, 16, 2)
		if err != nil {
			return Attention{}, nil, err
		}
		warnings = append(warnings, more...)
		for i, theta := range frequencies {
			ntk := theta * math.Pow(factor, -2*float64(i)/float64(n-2))
			m := outer(i) * e.number("ntk_factor")
			omega := theta/factor*(1-m) + ntk*m
			m = inner(i) * e.number("extrapolation_factor")
			frequencies[i] = omega*(1-m) + theta*m
		}
		e.Encoding.Frequencies = toFloat32(frequencies)
		return e.Attention, warnings, nil
	},
}

// blend returns 1 − ρ for the ramp from fast to slow turns.
func (e edit) blend(original int64, fast, slow float64) (share func(i int) float64, warnings []string, err error) {
	low, high, warnings, err := e.pairRange(original, fast, slow, true)
	return func(i int) float64 { return 1 - min(max((float64(i)-low)/(high-low), 0), 1) }, warnings, err
}
