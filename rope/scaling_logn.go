package rope

import "math"

// logN is the temperature with which the entropy of attention stays the same
// when there are more keys.
var logN = Method{
	Axis:    ScalingAxis,
	Part:    TemperaturePart,
	Name:    "log-n",
	Doc:     "Multiplies the scores of queries beyond the trained context, so the entropy of their attention does not grow with the number of keys. Frequencies are unchanged.",
	Formula: "score·t(p), t(p) = max(1, ln(p + 1)/ln L0) for the query's position p",
	Source:  "Su (2021), spaces.ac.cn/archives/8823; Chiang and Cholak, arXiv:2202.12172",
	Params:  []Param{paramOriginal},
	apply: func(e edit) (Attention, []string, error) {
		original, err := e.trained()
		if err != nil {
			return Attention{}, nil, err
		}
		if original < 2 {
			return Attention{}, nil, errOneToken
		}
		return e.warm(Temperature{Slope: 1 / math.Log(float64(original))})
	},
}
