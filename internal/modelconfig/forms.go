package modelconfig

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// ropeTypes says of each scaling of frequencies as which rope_type transformers computes it, where it computes it in
// calls of every length and with any cache. A scaling that is not here (nope) has no key. With length=run none has:
// transformers leaves cached keys as an earlier call turned them. What is written is read back and compared with what
// the layer computes, so a wrong line here writes nothing.
var ropeTypes = map[string]string{
	"theta":          plain, // another base
	"ntk":            plain,
	"dynamic":        plain, // at a context; transformers' own follows the length of each call
	"linear":         "linear",
	"dynamic-linear": "linear",
	"yarn":           "yarn",
	"ntk-by-parts":   "yarn", // without its gain
	"llama3":         "llama3",
	"proportional":   proportional,
	"longrope":       lists,
	"partial-ntk":    lists,
	"beta-ary":       lists,
	"resonance":      lists,
	"frequencies":    lists,
}

const (
	plain        = "default"
	lists        = "longrope" // a factor for each pair: the same list for short and for long calls fits any frequencies
	proportional = "proportional"
)

// sameAs is the relative error of frequencies that are the same: some steps of float32.
const sameAs = 2e-6

// form is a dictionary that may describe a scaling.
type form struct {
	name string
	base float64
	keys []entry
}

type entry struct {
	key   string
	value any
}

// forms returns the dictionaries to try for the scaling of a layer that was trained on so many tokens, the simplest
// first.
func (l Layer) forms(base float64, trained int64) (list []form) {
	name, known := ropeTypes[l.Scaling.Name]
	if !known || l.Now == nil || len(l.Now.Encoding.Frequencies) == 0 || l.Now.Encoding.LengthDependent.Trained > 0 {
		return nil
	}
	e := l.Now.Encoding.WithSenses(l.Now.Encoding.Senses())
	switch name {
	case plain:
		if now, ok := e.Base(); ok {
			list = append(list, form{name: name, base: now})
		}
	case "linear":
		list = append(list, form{name, base, []entry{{"factor", float32(1 / e.Frequencies[0])}}})
	case lists:
	default:
		list = append(list, form{name, base, l.ownKeys(name)})
	}
	if own, ok := l.listed(e, base, trained); ok {
		list = append(list, own)
	}
	return list
}

// ownKeys are the parameters of a scaling under the names that transformers has for them. What the method takes by
// itself is left out, as transformers takes the same.
func (l Layer) ownKeys(name string) (keys []entry) {
	m, err := rope.Lookup(rope.ScalingAxis, name)
	if err != nil {
		return nil
	}
	gain := l.gain()
	for _, s := range l.Scaling.Used {
		own := s.From == rope.Default || s.From == rope.Computed || s.Name == "rope_theta" || s.Name == partial && !ownShare(name)
		if own || slices.Contains(ours, s.Name) || !slices.ContainsFunc(m.Params, func(p rope.Param) bool { return p.Name == s.Name }) {
			continue
		}
		keys = append(keys, entry{s.Name, s.Value})
		if s.Name == attentionFactor {
			gain = 0
		}
	}
	if name == "yarn" && gain != 0 && (l.Scaling.Name != name || l.Scaling.gives("temperature")) {
		keys = append(keys, entry{attentionFactor, decimal(gain)})
	}
	return keys
}

const attentionFactor = "attention_factor"

// decimal is a number with a point, as transformers wants an attention_factor: it warns of 1.
func decimal(x float64) json.RawMessage {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return json.RawMessage(text)
}

// gain is what a layer multiplies query and key by, beside its original scale. A factor on the whole score is the
// square of one on all channels of both.
func (l Layer) gain() float64 {
	gain := l.Now.Encoding.EffectiveGain()
	if l.Now.Encoding.RotaryDim() == l.Now.HeadSize {
		gain *= math.Sqrt(l.Now.EffectiveScale() / l.Was.EffectiveScale())
	}
	return gain
}

// listed is longrope with one list for every length; false where a pair does not turn, which no factor gives.
func (l Layer) listed(e rope.Encoding, base float64, trained int64) (f form, ok bool) {
	if base == 0 {
		base = anyBase
	}
	factors := make([]float32, len(e.Frequencies))
	for i, w := range e.Frequencies {
		if factors[i] = float32(math.Pow(base, -2*float64(i)/float64(e.RotaryDim())) / w); !(w > 0) {
			return form{}, false
		}
	}
	keys := []entry{{"short_factor", factors}, {"long_factor", factors}, {attentionFactor, decimal(l.gain())}}
	if trained > 0 { // else transformers takes max_position_embeddings; lists that are the same make no difference
		keys = append(keys, entry{original, trained})
	}
	return form{lists, base, keys}, true
}

// anyBase is the base of factors for frequencies that follow none.
const anyBase = 10000

// gives says whether a parameter was given.
func (s *Scaling) gives(name string) bool {
	return slices.ContainsFunc(s.Used, func(x rope.Setting) bool { return x.Name == name && x.From == rope.Given })
}

// computed says whether a claim gives what a layer computes.
func (r Rotation) computed(l Layer, c rope.Context) bool {
	theta := r.Theta.Value
	if theta == 0 {
		theta = l.Base
	}
	if l.Now == nil || theta == 0 {
		return false
	}
	got, err := r.Computes(*l.Now, theta, c)
	off := sameAs + max(l.off(theta), l.off(l.Base))
	return err == nil && SameFrequencies(got.Encoding, l.Now.Encoding, off) && Near(got.Encoding.EffectiveGain(), l.gain(), sameAs)
}

// off is how far the export's frequencies are from the powers of a base where they are those: a model in 16 bits
// keeps few digits. Where they are not it is 0.
func (l Layer) off(base float64) (most float64) {
	pairs := len(l.Was.Encoding.Frequencies)
	for i, w := range l.Was.Encoding.Frequencies {
		if base > 0 {
			most = max(most, math.Abs(math.Abs(w)*math.Pow(base, float64(i)/float64(pairs))-1))
		}
	}
	if most > sixteenBits {
		return 0
	}
	return most
}

// sixteenBits is the relative error of frequencies in 16 bits.
const sixteenBits = 1e-3
