package rope

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
)

// BaseParam is the name of the parameter that says what a scaling starts from where
// the model is scaled already: Text("original") or Text("carried").
const BaseParam = "base"

// paramBase is a key of every scaling that is not neutral (see table).
var paramBase = Param{
	Name: BaseParam, Kind: Word, Words: []string{"original", "carried"},
	Doc: "must be given where the graph carries a scaling already: original starts from the frequencies before that one and drops its gain, carried starts from those that the graph has",
}

// withBase returns the spec with base= added.
func (s Spec) withBase(word string) Spec {
	params := maps.Clone(s.Params)
	if params == nil {
		params = map[string]Value{}
	}
	params[paramBase.Name] = Text(word)
	s.Params = params
	return s
}

// start returns what the spec is applied to: a as it is, or without the scaling
// that it carries. Where it carries one, and the spec gives another result with
// it than without it and does not say which is meant, that is an error.
func (s Spec) start(a Attention, c Context) (Attention, []string, error) {
	word := s.Params[paramBase.Name].text
	if word == "carried" || len(a.Encoding.Frequencies) == 0 {
		return a, nil, nil
	}
	carried, theta, ok := Recognise(a, c)
	switch {
	case word == "original" && ok:
		return a.without(carried, theta)
	case word == "original":
		return a.withoutNone()
	case !ok:
		return a, nil, nil
	}
	kept, _, errKept := s.withBase("carried").Apply(a, c)
	if errKept == nil && reflect.DeepEqual(kept.Encoding, a.Encoding) && kept.Scale == a.Scale {
		return a, nil, nil // it changes no frequencies
	}
	anew, _, errAnew := s.withBase("original").Apply(a, c)
	if errKept == nil && errAnew == nil && reflect.DeepEqual(kept, anew) {
		return a, nil, nil // it takes nothing from those that there are
	}
	return Attention{}, nil, fmt.Errorf("the frequencies carry %v already (on the base %s). Give --%v %v to start from those before it, or --%v %v to change those that there are",
		carried, formatNumber(theta), s.Axis, s.withBase("original"), s.Axis, s.withBase("carried"))
}

// without takes a recognised scaling out: its frequencies, and its gain.
func (a Attention) without(carried Spec, theta float64) (Attention, []string, error) {
	const near = 1e-4 // how well a gain in the scale is known
	e, scale := &a.Encoding, a.EffectiveScale()/defaultScale(a.HeadSize)
	gained, scaled := math.Abs(e.EffectiveGain()-1) > near, math.Abs(scale-1) > near
	blend := carried.Name == "yarn" || carried.Name == "ntk-by-parts"
	gain := magnitude(carried.Params["factor"].number, 1)
	var warnings []string
	switch {
	case carried.Name == "yarn" && gained && scaled:
		warnings = append(warnings, fmt.Sprintf("base=original takes the score's scale, %.6g times the usual one, for the model's own, and leaves it", scale))
	case blend && !gained && math.Abs(scale-gain*gain) <= near:
		a.Scale = 0 // the gain of query and key, measured as their product
	case blend && !gained && scaled:
		return Attention{}, nil, fmt.Errorf("base=original: the graph carries the frequencies of %v, and the score's scale is %.6g times the usual one, of which a part may be the gain of a YaRN: what it was before is not known. rope_theta=%s with base=carried computes the frequencies afresh and leaves the scale",
			carried, scale, formatNumber(theta))
	case carried.Name != "yarn" && gained:
		return Attention{}, nil, fmt.Errorf("base=original: the graph carries the frequencies of %v and a gain of %.6g, which that does not give: what it was before is not known. rope_theta=%s with base=carried computes the frequencies afresh and leaves the gain",
			carried, e.EffectiveGain(), formatNumber(theta))
	}
	e.Frequencies = geometric(theta, len(e.Frequencies))
	if gained {
		e.Gain = 0
	}
	return a, warnings, nil
}

// withoutNone says whether there is nothing to take out, or nothing that is known.
func (a Attention) withoutNone() (Attention, []string, error) {
	e := a.Encoding
	if len(e.Frequencies) < 2 {
		return a, nil, nil
	}
	theta, err := e.base()
	switch {
	case err != nil:
		return Attention{}, nil, fmt.Errorf("base=original: what scaled the graph's frequencies is not recognised (%w), so those before it are not known. Give rope_theta= with base=carried to compute them afresh, or base=carried alone to start from what the graph has", err)
	case e.EffectiveGain() != 1:
		return Attention{}, nil, fmt.Errorf("base=original: the rotation has a gain of %.6g, and its frequencies show no scaling that would give it, so what it was before is not known; base=carried leaves it", e.EffectiveGain())
	case e.LengthDependent.NTK > 0:
		a.Encoding.LengthDependent = LengthDependent{} // dynamic NTK leaves the frequencies of short calls as they were
		return a, nil, nil
	case e.LengthDependent.Trained > 0:
		return Attention{}, nil, errors.New("base=original: the graph turns by other frequencies in longer calls, and what it was before that is not known. Give rope_theta= with base=carried to compute them afresh")
	}
	return a, []string{fmt.Sprintf("base=original changes nothing: the frequencies are the powers of one base, %s, and if another base or ntk made them so, that does not show", formatNumber(theta))}, nil
}
