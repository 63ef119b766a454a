package rope

import "errors"

// rerope meets far keys, un-rotated, with the query at the constant w.
var rerope = Method{
	Axis:     PositionsAxis,
	Name:     "rerope",
	Doc:      "Rectified rotary embedding: no distance exceeds window, so untrained distances do not occur.",
	Formula:  "distance d becomes min(d, window)",
	Source:   "Su, ReRoPE (2023), spaces.ac.cn/archives/9708",
	RawCache: true,
	Measured: "SmolLM2-135M-Instruct, trained on 8K, found 5 of 5 pass keys at 16K with the default window",
	Params:   []Param{paramReRoPEWindow},
	apply: func(e edit) (Attention, []string, error) {
		if err := e.checkMap(); err != nil {
			return Attention{}, nil, err
		}
		window, err := e.trainedHalf()
		if err != nil {
			return Attention{}, nil, err
		}
		if warnings := e.hides(window, "window"); warnings != nil {
			return e.Attention, warnings, nil
		}
		e.Cache = Raw
		e.Bands = []Band{near, {Start: window, QueryOffset: float64(window)}}
		return e.Attention, nil, nil
	},
}

var paramReRoPEWindow = Param{Name: "window", Kind: Tokens, Rule: atLeastOne, Doc: "w, the first distance that changes; if not given, half of the trained context"}

// trainedHalf returns the given window, else half of the trained context.
func (e edit) trainedHalf() (int64, error) {
	if e.given("window") {
		return e.integer("window"), nil
	}
	if e.Original < 2 {
		return 0, errors.New("give window=; its default, half of the trained context, is unknown")
	}
	e.used.note("window", Integer(e.Original/2), Configuration)
	return e.Original / 2, nil
}
