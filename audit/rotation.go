package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rotation compares how a layer rotates query and key.
func (s *subject) rotation(at Layer, layer int) []Line {
	claim := s.claims.config.Rotation(layer)
	theta, scaling := line("rope_theta", "", "", ""), line("rope_scaling", "", "", "")
	if claim.Theta.Given() {
		theta.Expected, theta.From = short(claim.Theta.Value), s.claims.from(claim.Theta.Key)
	}
	switch key := claim.ScalingKey; {
	case key == "" && claim.Theta.Given():
		scaling.Expected, scaling.From = "none", s.claims.from(claim.Theta.Key)+" alone"
	case key != "":
		scaling.Expected, scaling.From = cmp.Or(claim.Other, scalingText(claim.Scaling)), s.claims.from(key)
	}
	if claim.None {
		theta.Expected, theta.From = "no rotation", s.claims.from(claim.NoneKey)
		scaling.Expected, scaling.From = "", ""
	}
	if claim.Unread != nil {
		scaling.Expected = "unread"
	}
	if at.Attention == nil {
		return []Line{unmeasured(theta, at), unmeasured(scaling, at)}
	}
	e := at.Attention.Encoding
	if len(e.Frequencies) == 0 || claim.None {
		return []Line{still(theta, len(e.Frequencies) == 0, claim)}
	}
	found, base := s.recognised(*at.Attention, layer)
	expected, err := s.expected(at, layer, claim)
	matches := err == nil && modelconfig.SameFrequencies(expected.Encoding, e, near)
	switch {
	case base != 0:
		theta.Found = short(base)
		theta = judged(theta, equal(base, claim.Theta.Value))
	case matches:
		theta.Found = theta.Expected
		theta = judged(theta, true)
	default:
		theta = unmeasured(theta, Layer{Reason: "the frequencies follow neither a base nor a recognised scaling"})
	}
	scaling.Found = measuredScaling(e, found, base)
	switch {
	case claim.Unread != nil:
		scaling.Verdict, scaling.Why = NotMeasured, claim.Unread.Error()
	case claim.Other != "" && scaling.Found != "none":
		scaling.Verdict, scaling.Why = NotMeasured, "no known method is what "+scaling.From+" asks for"
	case claim.Other != "":
		scaling = judged(scaling, false)
	case err != nil:
		scaling.Verdict, scaling.Why = NotMeasured, err.Error()
	default:
		scaling = judged(scaling, matches)
		if scaling.Verdict == Agrees {
			scaling.Found = scaling.Expected
		} else if e.LengthDependent.Trained == 0 && expected.Encoding.LengthDependent.Trained > 0 && slices.EqualFunc(expected.Encoding.Frequencies, e.Frequencies, equal) {
			scaling.Why = fmt.Sprintf("the graph uses the frequencies for up to %d tokens at every length", expected.Encoding.LengthDependent.Trained)
		}
	}
	lines := []Line{theta, scaling}
	if gain := gainLine(*at.Attention, expected, scaling, err); gain.What != "" && claim.Unread == nil {
		lines = append(lines, gain)
	}
	return append(lines, s.rotated(at)...)
}

// still compares a layer of which graph or configuration turn nothing.
func still(l Line, turnsNot bool, claim modelconfig.Rotation) Line {
	l.Found = "a rotation"
	if turnsNot {
		l.Found = "no rotation"
	}
	if claim.NoneKey == "" {
		l.Verdict, l.Why = NotClaimed, "no key says which layers rotate query and key"
		return l
	}
	return judged(l, turnsNot == claim.None)
}

// older compares what keys of older configurations ask for beside frequencies.
func (s *subject) older(at Layer) (lines []Line) {
	for _, asked := range []struct {
		key, what string
		has       func(a *rope.Attention) bool
	}{
		{s.claims.config.LogN(), "log-n factor on queries", func(a *rope.Attention) bool { return a.Temperature != rope.Temperature{} }},
		{s.claims.config.Decay(), "decay by distance (xPos)", func(*rope.Attention) bool { return false }},
		{s.claims.config.Slopes(), "slopes by distance (ALiBi)", func(a *rope.Attention) bool { return a.Distance.Slopes != nil }},
		{s.claims.config.Buckets(), "buckets of distances (T5)", func(a *rope.Attention) bool { return a.Distance.Starts != nil }},
	} {
		l := line(asked.key, asked.what, s.claims.from(asked.key), "")
		switch {
		case asked.key == "":
		case at.Attention == nil || at.RotationOnly:
			lines = append(lines, unmeasured(l, at))
		case asked.has(at.Attention):
			l.Found = asked.what
			lines = append(lines, judged(l, true))
		default:
			l.Found = "none"
			lines = append(lines, judged(l, false))
		}
	}
	return lines
}

// rotated compares how many channels turn, and which of them together.
func (s *subject) rotated(at Layer) []Line {
	c, e := s.claims.config, at.Attention.Encoding
	width := line("rotary_dim", "", "", fmt.Sprint(e.RotaryDim()))
	if n := c.RotaryDim(); n.Given() {
		width.Expected, width.From = short(n.Value), s.claims.from(n.Key)
	}
	layout := line("rotary layout", "", "", layoutText(e.Layout == rope.Interleaved))
	if key, interleaved := c.Interleaved(); key != "" {
		layout.Expected, layout.From = layoutText(interleaved), s.claims.from(key)
	}
	return []Line{judged(width, width.Expected == width.Found), judged(layout, layout.Expected == layout.Found)}
}

// recognised returns the scaling that the graph's frequencies show, if any, and their
// base before it; 0 where they follow none.
func (s *subject) recognised(a rope.Attention, layer int) (rope.Spec, float64) {
	if base, ok := a.Encoding.Base(); ok {
		return rope.Spec{}, base
	}
	if spec, base, ok := rope.Recognise(a, s.claims.config.Context(layer)); ok {
		return spec, base
	}
	return rope.Spec{}, 0
}

// expected returns what the claimed scaling makes of the claimed base, or where no
// base is claimed of the graph's. A base that differs is no matter of the scaling:
// where that alone differs the graph's is taken.
func (s *subject) expected(at Layer, layer int, claim modelconfig.Rotation) (rope.Attention, error) {
	a := *at.Attention
	_, base := s.recognised(a, layer)
	bases := []float64{claim.Theta.Value, base}
	var first rope.Attention
	err := errors.New("the graph's base is unknown, and none is claimed")
	for _, theta := range slices.DeleteFunc(bases, func(x float64) bool { return x == 0 }) {
		got, failed := claim.Computes(a, theta, s.claims.config.Context(layer))
		if failed != nil {
			return rope.Attention{}, failed
		}
		if err != nil {
			first, err = got, nil
		}
		if modelconfig.SameFrequencies(got.Encoding, a.Encoding, near) {
			return got, nil
		}
	}
	return first, err
}

// measuredScaling says what scaled the frequencies of a graph.
func measuredScaling(e rope.Encoding, found rope.Spec, base float64) string {
	switch {
	case e.LengthDependent.NTK > 0:
		return fmt.Sprintf("dynamic NTK with factor %g beyond %d tokens", e.LengthDependent.NTK, e.LengthDependent.Trained)
	case e.LengthDependent.Trained > 0:
		return fmt.Sprintf("other frequencies beyond %d tokens", e.LengthDependent.Trained)
	case found.Name != "":
		return found.String()
	case base == 0:
		return "none that is recognised"
	case e.Turning() < len(e.Frequencies):
		return fmt.Sprintf("%d of %d pairs turn", e.Turning(), len(e.Frequencies))
	}
	return "none"
}

// gainLine compares the gain on query and key; its What is "" where graph and
// configuration have none. Without a cache a gain shows in the scale of the score.
func gainLine(a, expected rope.Attention, scaling Line, unknown error) Line {
	want, have := expected.Encoding.EffectiveGain(), a.Encoding.EffectiveGain()
	if unknown != nil || want == 1 && have == 1 {
		return Line{}
	}
	l := line("attention_factor", short(want), scaling.From, short(have))
	if inScale := a.EffectiveScale() / (rope.Attention{HeadSize: a.HeadSize}).EffectiveScale(); a.HeadSize > 0 && have == 1 && equal(inScale, want*want) {
		l.Found = short(want)
		return judged(l, true)
	}
	return judged(l, equal(want, have))
}

func scalingText(spec rope.Spec) string {
	if spec.Name == "" {
		return "none"
	}
	return spec.String()
}

func layoutText(interleaved bool) string {
	if interleaved {
		return "interleaved"
	}
	return "half"
}
