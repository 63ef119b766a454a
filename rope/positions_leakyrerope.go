package rope

import "errors"

var leakyReRoPE = Method{
	Axis:     PositionsAxis,
	Name:     "leaky-rerope",
	Doc:      "ReRoPE in which distances beyond window still grow, factor times slower, so far keys keep different distances.",
	Formula:  "distance d stays d if d < window, else window + (d − window)/factor: query at p/factor + window·(1 − 1/factor), key at p/factor",
	Source:   "Su, ReRoPE (2023), spaces.ac.cn/archives/9708",
	RawCache: true,
	Params: []Param{
		paramReRoPEWindow,
		{Name: "factor", Kind: Real, Rule: aboveOne, Doc: "k, how many times slower distances beyond window grow; must be given"},
	},
	apply: func(e edit) (Attention, []string, error) {
		if err := e.checkMap(); err != nil {
			return Attention{}, nil, err
		}
		if !e.given("factor") {
			return Attention{}, nil, errors.New("give factor=, how many times slower distances beyond window grow")
		}
		window, err := e.trainedHalf()
		if err != nil {
			return Attention{}, nil, err
		}
		if warnings := e.hides(window, "window"); warnings != nil {
			return e.Attention, warnings, nil
		}
		slope := rounded(1 / e.number("factor"))
		e.Cache = Raw
		e.Bands = []Band{near, {Start: window, QueryScale: slope, QueryOffset: rounded(float64(window) * (1 - slope)), KeyScale: slope}}
		var warnings []string
		if reach := float64(e.Original-window)*e.number("factor") + float64(window); e.Original > window && reach < float64(e.Length) {
			warnings = e.reaches(int64(reach))
		}
		return e.Attention, warnings, nil
	},
}
