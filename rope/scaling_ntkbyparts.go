package rope

// ntkByParts is YaRN's blend of frequencies without its gain.
var ntkByParts = Method{
	Axis:    ScalingAxis,
	Part:    FrequencyPart,
	Name:    "ntk-by-parts",
	Doc:     "YaRN without its gain: keeps frequencies that turn often within the trained context, and interpolates those that turn less than once.",
	Formula: "θ'_i as in yarn; gain unchanged",
	Source:  "Peng et al., YaRN, arXiv:2309.00071, §3.2",
	Params:  []Param{paramFactor, paramOriginal, paramBetaFast, paramBetaSlow, paramTruncate, paramTheta, paramPartial},
	apply: func(e edit) (Attention, []string, error) {
		frequencies, _, warnings, err := e.yarnFrequencies()
		if err != nil {
			return Attention{}, nil, err
		}
		e.Encoding.Frequencies = frequencies
		return e.Attention, warnings, nil
	},
}
