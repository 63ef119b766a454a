package rope

import (
	"fmt"
	"math"
	"slices"
)

// Reachable returns for how many tokens a model with these methods is trained or
// scaled: the trained context (c.Original, or the one that a scaling is given),
// times the factor of the scaling. It returns 0 if the trained context or the
// factor is unknown.
func Reachable(specs []Spec, c Context) int64 {
	tokens := float64(c.Original)
	scaled := slices.ContainsFunc(specs, func(s Spec) bool { return s.part() == FrequencyPart })
	for _, s := range specs {
		m, err := Lookup(s.Axis, s.Name)
		if err != nil || m.Axis != ScalingAxis || m.Neutral || scaled && m.Part == TemperaturePart {
			continue
		}
		i := slices.IndexFunc(m.Params, func(p Param) bool { return p.Stretches })
		if i < 0 {
			return 0
		}
		e := edit{method: m, params: s.Params}
		if e.given(paramOriginal.Name) {
			tokens = e.number(paramOriginal.Name)
		}
		if stretch := e.number(m.Params[i].Name); stretch > 0 {
			tokens *= stretch
		} else { // it follows from the context
			tokens = float64(c.Length)
		}
	}
	return int64(math.Ceil(min(tokens, maxWhole)))
}

// Unreached returns a warning if a position map changes no distance within the
// tokens that the model is trained or scaled for (Reachable), else "".
func (a Attention) Unreached(reachable int64, c Context) string {
	if len(a.Bands) < 2 || a.Chunk > 0 || reachable == 0 {
		return ""
	}
	from, far := a.Bands[1].Start, a.Bands[1]
	if from == reachable && far.QueryScale == 1 && far.KeyScale == 1 && far.QueryOffset < 0 {
		return "" // just the distances that are too long become shorter
	}
	if from < reachable || c.Length > 0 && from >= c.Length { // the methods compare with the context
		return ""
	}
	return fmt.Sprintf("distances are changed only from %d on, beyond the %d tokens that the model is trained or scaled for; give a smaller value", from, reachable)
}

// farthest is the number of positions that float32 tells apart. Angles are
// positions times frequencies in it, as exporters and the op compute them.
const farthest = 1 << 24

// tooFar warns of a parameter that stretches the trained context (0 if unknown)
// beyond that.
func (e edit) tooFar(key string, original int64) []string {
	if e.number(key)*float64(max(original, 1)) <= farthest {
		return nil
	}
	return []string{fmt.Sprintf("%s=%v reaches beyond the %d positions (2^24) that float32 can distinguish; give a smaller value", key, e.value(key), int64(farthest))}
}
