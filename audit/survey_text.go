package audit

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Describe says in a line what an attention layer computes. Two that compute the same have
// the same line, whoever wrote them.
func (s Layer) Describe() string {
	a := s.Attention
	if a == nil {
		return "not measured: " + s.Reason
	}
	parts := []string{rotationText(*a)}
	if s.RotationOnly {
		return parts[0] + "; nothing else was measured: " + s.Reason
	}
	parts = append([]string{fmt.Sprintf("%d heads, %d for keys", a.Heads, a.KVHeads)}, parts...)
	parts = append(parts, fmt.Sprintf("score scale %.5g", a.EffectiveScale()))
	if a.Softcap != 0 {
		parts = append(parts, fmt.Sprintf("softcap %.5g", a.Softcap))
	}
	for _, text := range []string{a.Encoding.DescribeAxes(), a.DescribeFactors()} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if a.Temperature != (rope.Temperature{}) {
		parts = append(parts, "a temperature by position")
	}
	if s.HasSinks {
		parts = append(parts, "sinks")
	}
	parts = append(parts, a.DescribePositions()...)
	parts = append(parts, a.Mask.String())
	if a.Cache == rope.Raw {
		parts = append(parts, "raw cache")
	}
	return strings.Join(parts, ", ")
}

// rotationText says by which frequencies query and key are turned.
func rotationText(a rope.Attention) string {
	e := a.Encoding
	if len(e.Frequencies) == 0 {
		return "no rotation"
	}
	text := fmt.Sprintf("rotary %d %v, ", e.RotaryDim(), e.Layout)
	theta, plain := e.Base()
	switch spec, base, known := rope.Recognise(a, rope.Context{}); {
	case plain:
		text += fmt.Sprintf("theta %g", theta)
	case known:
		text += fmt.Sprintf("theta %g scaled by %v", base, spec)
	default:
		text += "frequencies " + list(e.Frequencies)
	}
	if turning := e.Turning(); turning < len(e.Frequencies) {
		text += fmt.Sprintf(", %d of %d pairs turn", turning, len(e.Frequencies))
	}
	if gain := e.EffectiveGain(); gain != 1 {
		text += fmt.Sprintf(", gain %.5g", gain)
	}
	if l := e.LengthDependent; l.Trained > 0 {
		text += fmt.Sprintf(", other frequencies beyond %d tokens", l.Trained)
		switch {
		case l.Long != nil:
			text += " " + list(l.Long)
		case l.NTK > 0:
			text += fmt.Sprintf(" (dynamic, factor %g)", l.NTK)
		}
	}
	if e.ExactAngles {
		text += ", exact angles"
	}
	return text
}

// list writes frequencies with the digits that measurements agree in.
func list(frequencies []float64) string {
	var texts []string
	for _, w := range frequencies {
		texts = append(texts, fmt.Sprintf("%.4g", w))
	}
	return strings.Join(texts, " ")
}
