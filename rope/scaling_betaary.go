package rope

import "math"

// betaAry is Su's mixed-base reading of positions: slow digits get a larger
// base than fast ones.
var betaAry = Method{
	Axis:    ScalingAxis,
	Part:    FrequencyPart,
	Name:    "beta-ary",
	Doc:     "Divides frequencies by a share of the factor that grows from pair to pair; the slowest pair gets all of it.",
	Formula: "θ'_i = θ_i·exp(−a·(i + 1)^b), a = ln factor / (n/2)^b",
	Source:  "Su, Transformer upgrade roads 11: β-ary positions (kexue.fm/archives/9706)",
	Params: []Param{
		paramFactor,
		{Name: "b", Kind: Real, Default: Number(0.625), Rule: aboveZero, Doc: "exponent of the growth: a larger value changes mostly slow pairs; 0.75 is the value in the authors' code"},
		paramTheta,
		paramPartial,
	},
	apply: func(e edit) (Attention, []string, error) {
		frequencies, warnings, err := e.source()
		if err != nil {
			return Attention{}, nil, err
		}
		factor, more, err := e.factor(e.Original)
		if err != nil {
			return Attention{}, nil, err
		}
		b := e.number("b")
		a := math.Log(factor) / math.Pow(float64(len(frequencies)), b)
		for i := range frequencies {
			frequencies[i] *= math.Exp(-a * math.Pow(float64(i+1), b))
		}
		e.Encoding.Frequencies = toFloat32(frequencies)
		return e.Attention, append(warnings, more...), nil
	},
}
