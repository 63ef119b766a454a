package rope

import (
	"errors"
	"math"
)

// ntk raises the base so that the slowest pair is interpolated and the fastest
// unchanged. It starts from the frequencies themselves, θ_i·alpha^(−2i/(n−2)),
// which is the same and needs no base.
var ntk = Method{
	Axis:    ScalingAxis,
	Part:    FrequencyPart,
	Name:    "ntk",
	Doc:     "NTK-aware scaling: raises the base, so that slow pairs are interpolated by alpha, fast ones unchanged, and those between changed in proportion.",
	Formula: "θ'_i = (θ·alpha^(n/(n − 2)))^(−2i/n)",
	Source:  "bloc97, NTK-aware scaled RoPE (2023); Peng et al., YaRN, arXiv:2309.00071, §3.1",
	Params: []Param{
		{Name: "alpha", Kind: Real, Rule: atLeastOne, Stretches: true, Doc: "factor by which the slowest pair is interpolated"},
		paramTheta,
		paramPartial,
	},
	apply: func(e edit) (Attention, []string, error) {
		if !e.given("alpha") {
			return Attention{}, nil, errors.New("give alpha=, the factor by which the slowest pair is interpolated")
		}
		frequencies, warnings, err := e.source()
		if err != nil {
			return Attention{}, nil, err
		}
		n := e.Encoding.RotaryDim()
		if n < 4 {
			return Attention{}, nil, errors.New("the method needs at least two channel pairs, and the graph rotates one")
		}
		for i := range frequencies {
			frequencies[i] *= math.Pow(e.number("alpha"), -2*float64(i)/float64(n-2))
		}
		e.Encoding.Frequencies = toFloat32(frequencies)
		return e.Attention, append(warnings, e.tooFar("alpha", e.Original)...), nil
	},
}
