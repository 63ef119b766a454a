package survey

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Describe says in a line what an attention computes. Two that compute the same have
// the same line, whoever wrote them.
func (s Site) Describe() string {
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
	if a.Temperature != (rope.Temperature{}) {
		parts = append(parts, "a temperature by position")
	}
	if s.HasSinks {
		parts = append(parts, "sinks")
	}
	parts = append(parts, positionsText(*a)...)
	parts = append(parts, maskText(a.Mask))
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
	layout := "half"
	if e.Layout == rope.Interleaved {
		layout = "interleaved"
	}
	text := fmt.Sprintf("rotary %d %s, ", e.RotaryDim(), layout)
	theta, plain := e.Base()
	switch spec, base, known := rope.Recognise(a, rope.Context{}); {
	case plain:
		text += fmt.Sprintf("theta %g", theta)
	case known:
		text += fmt.Sprintf("theta %g scaled by %v", base, spec)
	default:
		text += "frequencies " + list(e.Frequencies)
	}
	if gain := e.EffectiveGain(); gain != 1 {
		text += fmt.Sprintf(", gain %.5g", gain)
	}
	if l := e.LengthDependent; l.Trained > 0 {
		text += fmt.Sprintf(", beyond %d tokens others", l.Trained)
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

// positionsText says at which distances queries meet keys, nothing where they do at
// their own.
func positionsText(a rope.Attention) (parts []string) {
	for _, b := range a.Bands {
		text := fmt.Sprintf("from distance %d on query at %g·p + %g and key at %g·p", b.Start, b.QueryScale, b.QueryOffset, b.KeyScale)
		if b.QueryLimit != 0 {
			text += fmt.Sprintf(", at most at %g", b.QueryLimit)
		}
		if b.Group > 1 {
			text += fmt.Sprintf(", in groups of %d", b.Group)
		}
		parts = append(parts, text)
	}
	if a.Chunk > 0 {
		parts = append(parts, fmt.Sprintf("chunks of %d", a.Chunk))
	}
	return parts
}

// maskText says which keys a query sees.
func maskText(m rope.Mask) string {
	var parts []string
	if m.Causal {
		parts = append(parts, "causal")
	}
	if m.Window > 0 {
		parts = append(parts, fmt.Sprintf("window %d", m.Window))
	}
	if m.FirstKeys > 0 {
		parts = append(parts, fmt.Sprintf("first %d keys", m.FirstKeys))
	}
	switch m.Documents {
	case rope.IntraDocument:
		parts = append(parts, "own document")
	case rope.AnchorDocument:
		parts = append(parts, "own document and anchor")
	}
	if m.Restart {
		parts = append(parts, fmt.Sprintf("positions restart at %d", m.Start))
	}
	if m.Padding {
		parts = append(parts, "padding")
	}
	if m.Bias {
		parts = append(parts, "a bias")
	}
	if len(parts) == 0 {
		return "all keys"
	}
	return strings.Join(parts, " + ")
}
