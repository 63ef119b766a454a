package rope

import (
	"errors"
	"fmt"
)

var selfExtend = Method{
	Axis:     PositionsAxis,
	Name:     "self-extend",
	Doc:      "Self-Extend: near keys keep their distances; farther keys share one position in each group.",
	Formula:  "distance d stays d if d < window, else ⌊p_query/group⌋ − ⌊p_key/group⌋ + window − ⌊window/group⌋",
	Source:   "Jin et al., Self-Extend, arXiv:2401.01325, §3.2",
	Measured: "SmolLM2-135M-Instruct, trained on 8K, found 5 of 5 pass keys at 16K with window=1k,group=4",
	RawCache: true,
	Params: []Param{
		{Name: "window", Kind: Tokens, Rule: atLeastOne, Doc: "w, the first distance that changes; must be given"},
		{Name: "group", Kind: Whole, Rule: atLeastOne, Doc: "G, number of positions in a group; must be given"},
	},
	apply: func(e edit) (Attention, []string, error) {
		if err := e.checkMap(); err != nil {
			return Attention{}, nil, err
		}
		for _, key := range []string{"window", "group"} {
			if !e.given(key) {
				return Attention{}, nil, fmt.Errorf("give window= and group=; %s= is missing", key)
			}
		}
		window, group := e.integer("window"), e.integer("group")
		if group == 1 {
			return e.Attention, []string{"group=1 changes nothing"}, nil
		}
		if warnings := e.hides(window, "window"); warnings != nil {
			return e.Attention, warnings, nil
		}
		if window < group {
			return Attention{}, nil, errors.New("window must not be below group; otherwise a far key would get a smaller distance than a near one")
		}
		e.Cache = Raw
		e.Bands = []Band{near, {Start: window, QueryScale: 1, QueryOffset: float64(window - window/group), KeyScale: 1, Group: group}}
		var warnings []string
		if reach := float64(e.Original-window)*float64(group) + float64(window); e.Original > window && reach < float64(e.Length) {
			warnings = e.reaches(int64(reach))
		}
		return e.Attention, warnings, nil
	},
}
