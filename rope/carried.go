package rope

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
)

// BaseParam is the name of the parameter that says what a scaling starts from where
// the model is already scaled: Text("original") or Text("carried").
const BaseParam = "base"

// paramBase is a key of every scaling that is not neutral (see table).
var paramBase = Param{
	Name: BaseParam, Kind: Word, Words: []string{"original", "carried"},
	Doc: "must be given if the graph's frequencies are already scaled: original starts from the frequencies before that scaling and drops its gain, carried starts from those in the graph",
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

// start returns what the spec is applied to: a itself, or a without its own scaling.
// It is an error if a is already scaled, the result depends on whether that scaling is
// taken out first, and the spec does not say which is meant.
func (s Spec) start(a Attention, c Context) (Attention, []string, error) {
	word := s.Params[paramBase.Name].text
	if word == "carried" || len(a.Encoding.Frequencies) == 0 {
		return a, nil, nil
	}
	found, theta, ok := Recognise(a, c)
	switch {
	case word == "original" && ok:
		return a.without(found, theta)
	case word == "original":
		return a.withoutNone()
	case !ok:
		return a, nil, nil
	}
	onCarried, _, errCarried := s.withBase("carried").Apply(a, c)
	if errCarried == nil && reflect.DeepEqual(onCarried.Encoding, a.Encoding) && onCarried.Scale == a.Scale {
		return a, nil, nil // it changes no frequencies
	}
	onOriginal, _, errOriginal := s.withBase("original").Apply(a, c)
	if errCarried == nil && errOriginal == nil && reflect.DeepEqual(onCarried, onOriginal) {
		return a, nil, nil // it does not start from the graph's frequencies
	}
	return Attention{}, nil, fmt.Errorf("the frequencies are already scaled by %v (on the base %s). Give --%v %v to start from those before it, or --%v %v to start from those in the graph",
		found, formatNumber(theta), s.Axis, s.withBase("original"), s.Axis, s.withBase("carried"))
}

// without takes a recognised scaling out: its frequencies, and its gain.
func (a Attention) without(found Spec, theta float64) (Attention, []string, error) {
	const near = 1e-4 // how well a gain in the scale is known
	e, scale := &a.Encoding, a.EffectiveScale()/defaultScale(a.HeadSize)
	gained, scaled := math.Abs(e.EffectiveGain()-1) > near, math.Abs(scale-1) > near
	blend := found.Name == "yarn" || found.Name == "ntk-by-parts"
	gain := magnitude(found.Params["factor"].number, 1)
	var warnings []string
	switch {
	case found.Name == "yarn" && gained && scaled:
		warnings = append(warnings, fmt.Sprintf("base=original leaves the score's scale unchanged: it is %.6g times the usual scale, which is assumed to be the model's own", scale))
	case blend && !gained && math.Abs(scale-gain*gain) <= near:
		a.Scale = 0 // the gain of query and key, measured as their product
	case blend && !gained && scaled:
		return Attention{}, nil, fmt.Errorf("cannot recover the original values: the graph has the frequencies of %v, and part of the score's scale, %.6g times the usual one, may be YaRN's gain. rope_theta=%s with base=carried computes the frequencies afresh and leaves the scale unchanged",
			found, scale, formatNumber(theta))
	case found.Name != "yarn" && gained:
		return Attention{}, nil, fmt.Errorf("cannot recover the original values: %v does not explain the gain %.6g in the graph. rope_theta=%s with base=carried computes the frequencies afresh and leaves the gain unchanged",
			found, e.EffectiveGain(), formatNumber(theta))
	}
	e.Frequencies = e.powers(theta)
	if gained {
		e.Gain = 0
	}
	return a, warnings, nil
}

// withoutNone handles frequencies of which no scaling is recognised: none may be there.
func (a Attention) withoutNone() (Attention, []string, error) {
	e := a.Encoding
	if len(e.Frequencies) < 2 {
		return a, nil, nil
	}
	theta, err := e.base()
	switch {
	case err != nil:
		return Attention{}, nil, fmt.Errorf("cannot recover the original values: the scaling of the graph's frequencies is not recognised (%w). Give rope_theta= with base=carried to compute them afresh, or base=carried alone to start from those in the graph", err)
	case e.EffectiveGain() != 1:
		return Attention{}, nil, fmt.Errorf("cannot recover the original values: the frequencies show no scaling that explains the gain %.6g in the graph; base=carried leaves it unchanged", e.EffectiveGain())
	case e.LengthDependent.NTK > 0:
		a.Encoding.LengthDependent = LengthDependent{} // dynamic NTK does not change the frequencies of short calls
		return a, nil, nil
	case e.LengthDependent.Trained > 0:
		return Attention{}, nil, errors.New("cannot recover the original values: the graph uses other frequencies in longer calls. Give rope_theta= with base=carried to compute them afresh")
	}
	return a, []string{fmt.Sprintf("base=original has no effect: the frequencies are the powers of one base, %s, so an earlier change of the base (theta or ntk) cannot be seen", formatNumber(theta))}, nil
}
