package audit

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// near is how far two numbers may be apart, relatively, that are the same: models in
// 16 bits keep frequencies to three digits.
const near = 1e-3

func equal(a, b float64) bool { return modelconfig.Near(a, b, near) }

// from names a key and its file.
func (c claims) from(key string) string { return filepath.Base(c.config.Path) + ": " + key }

// lines compares one attention layer with what is claimed of it.
func (s *subject) lines(at Layer) []Line {
	n := s.numbers(at)
	lines := s.rotation(at, n.rotation.layer)
	unknown := s.unknownLayer(at)
	for i := range lines {
		if !n.rotation.known && !(lines[i].What == "rope_theta" && n.base.known) {
			lines[i] = hold(lines[i], unknown)
		}
	}
	if !n.rotation.known && n.base.known {
		lines[0] = s.rotation(at, n.base.layer)[0]
	}
	window := s.window(at, n.window.layer)
	if !n.window.known {
		window = hold(window, unknown)
	}
	lines = append(lines, window)
	lines = append(lines, s.older(at)...)
	lines = append(lines, s.unsaid(at)...)
	return append(lines, s.shape(at, n.rotation.layer)...)
}

// hold takes back the verdict of a line whose claim may be another layer's.
func hold(l Line, why string) Line {
	if l.Verdict == Differs || l.Verdict == Agrees {
		l.Verdict, l.Why = NotMeasured, why
	}
	return l
}

// number is the number in config.json of an attention layer of the graph, as far as a claim goes. It is
// known where the file names as many, or the same of all.
type number struct {
	layer int
	known bool
}

// numbers are those of a layer for what is claimed of its rotation, of its base alone, and of its window.
type numbers struct{ rotation, base, window number }

func (s *subject) numbers(at Layer) (n numbers) {
	c, count := s.claims.config, s.layersBeside(at)
	turns := at.Attention != nil && len(at.Attention.Encoding.Frequencies) > 0
	of := func(said func(layer int) any) number {
		layer, known := c.LayerOf(at.Place, count, said)
		return number{layer, known}
	}
	n.rotation = of(func(i int) any { return c.Rotation(i) })
	n.base = of(func(i int) any {
		r := c.Rotation(i)
		if turns && r.None {
			return nil // it is one of the others
		}
		return []any{r.None, r.Theta}
	})
	n.window = of(func(i int) any { return c.Window(i) })
	return n
}

// layersBeside counts the attention layers of the graph that a layer is in.
func (s *subject) layersBeside(at Layer) (count int) {
	for _, other := range s.survey.Layers {
		if other.Scope == at.Scope {
			count++
		}
	}
	return count
}

func (s *subject) unknownLayer(at Layer) string {
	return fmt.Sprintf("the graph has %d attention layers and %s names %d, each with its own claims, so they cannot be matched",
		s.layersBeside(at), filepath.Base(s.claims.config.Path), s.claims.config.Layers())
}

// unmeasured is the line of a claim whose layer could not be measured.
func unmeasured(l Line, at Layer) Line {
	l.Verdict, l.Why = NotMeasured, at.Reason
	if l.Expected == "" {
		l.Verdict = NotClaimed
	}
	return l
}

// judged sets the verdict of a line that was measured.
func judged(l Line, agrees bool) Line {
	switch {
	case l.Expected == "":
		l.Verdict = NotClaimed
	case agrees:
		l.Verdict = Agrees
	default:
		l.Verdict = Differs
	}
	return l
}

// notClaimed is the line of something in the graph for which the configuration has no key: transformers computes a
// model without it.
func (s *subject) notClaimed(l Line) Line {
	l.Expected, l.From, l.Verdict, l.Why = "none", filepath.Base(s.claims.config.Path), Differs, Unsaid
	return l
}

// Unsaid is Line.Why of what a graph has and no key asks for.
const Unsaid = "not claimed, but the graph has it"

// unsaid names the settings of a layer without a key.
func (s *subject) unsaid(at Layer) (lines []Line) {
	if at.Attention == nil || at.RotationOnly || s.claims.config.Path == "" {
		return nil
	}
	for _, x := range s.claims.config.Unsaid(*at.Attention) {
		lines = append(lines, s.notClaimed(line(x.What, "", "", x.Is)))
	}
	return lines
}

// window compares the window of a layer.
func (s *subject) window(at Layer, layer int) Line {
	w := s.claims.config.Window(layer)
	causal := at.Attention == nil || at.Attention.Mask.Causal
	l := line("sliding_window", "", "", "")
	if w.Key != "" {
		l.From, l.Expected = s.claims.from(w.Key), windowText(causal, w.Spans(causal)...)
	}
	if w.Unread != "" {
		l.Expected, l.Verdict, l.Why = "another kind of mask", NotMeasured, w.Unread
		return l
	}
	if at.Attention == nil || at.RotationOnly {
		return unmeasured(l, at)
	}
	have := at.Attention.Mask.Window
	l.Found = windowText(causal, have)
	positions := int64(s.claims.config.Positions().Value)
	switch {
	case w.Key == "" && have > 0 && s.claims.config.Path != "":
		return s.notClaimed(l)
	case w.Some && have == 0 && s.windowed(at):
		l.Verdict, l.Why = NotClaimed, l.From+" does not say which layers have it"
		return l
	case w.Value > 0 && have == 0 && positions > 0 && w.Value >= positions:
		l.Why = fmt.Sprintf("a window of %d hides nothing within the %d positions of the model", w.Value, positions)
		return judged(l, true)
	case slices.Contains(w.Spans(causal), have):
		if l.Expected != "" {
			l.Expected = l.Found // of two, the one that is meant
		}
		return judged(l, true)
	}
	return judged(l, false)
}

// windowed says whether another layer of the graph has a window.
func (s *subject) windowed(at Layer) bool {
	for _, other := range s.survey.Layers {
		if other.Scope == at.Scope && other.Attention != nil && other.Attention.Mask.Window > 0 {
			return true
		}
	}
	return false
}

// windowText says which of several windows a layer has. A causal layer's is a number of keys; one to both sides says at what
// distance keys are seen.
func windowText(causal bool, spans ...int64) string {
	texts := make([]string, len(spans))
	for i, n := range spans {
		switch {
		case n == 0:
			texts[i] = "none"
		case causal:
			texts[i] = fmt.Sprint(n)
		default:
			texts[i] = fmt.Sprintf("±%d", n-1)
		}
	}
	return strings.Join(texts, " or ")
}

// shape compares what has nothing to do with positions.
func (s *subject) shape(at Layer, layer int) (lines []Line) {
	c, a := s.claims.config, at.Attention
	if a == nil {
		a = &rope.Attention{}
	}
	add := func(l Line, agrees bool, measured bool) {
		if at.Attention == nil || at.RotationOnly || !measured {
			l.Found = ""
			lines = append(lines, unmeasured(l, at))
			return
		}
		lines = append(lines, judged(l, agrees))
	}
	if n := c.Softcap(); n.Given() || a.Softcap != 0 {
		l := line("attn_logit_softcapping", "", "", softcapText(a.Softcap))
		if n.Given() {
			l.Expected, l.From = softcapText(n.Value), s.claims.from(n.Key)
		}
		add(l, equal(n.Value, a.Softcap), true)
	}
	if sinks, given := c.Sinks(); sinks || at.HasSinks {
		l := line("sinks", "", "", yesNo(at.HasSinks))
		if given {
			l.Expected, l.From = yesNo(sinks), s.claims.from("model_type")
		}
		add(l, sinks == at.HasSinks, true)
	}
	if n := c.Scale(); n.Given() && (a.Scale != 0 || a.HeadSize > 0) {
		gain := a.Encoding.EffectiveGain()
		have := a.EffectiveScale()
		if e, err := s.expected(at, layer, c.Rotation(layer)); err == nil && gain == 1 {
			gain = e.Encoding.EffectiveGain() // without a cache it may stand in the scale
		}
		add(line("score scale", short(n.Value), s.claims.from(n.Key), short(have)),
			equal(n.Value, have) || equal(n.Value*gain*gain, have), true)
	}
	c = c.OfLayer(at.Place)
	for _, n := range []struct {
		what     string
		claims   [2]modelconfig.Number
		measured int
	}{
		{"num_attention_heads", [2]modelconfig.Number{c.Heads(), s.claims.genai.Heads}, a.Heads},
		{"num_key_value_heads", [2]modelconfig.Number{c.KVHeads(), s.claims.genai.KVHeads}, a.KVHeads},
		{"head_dim", [2]modelconfig.Number{c.HeadSize(), s.claims.genai.HeadSize}, a.HeadSize},
	} {
		for _, claim := range s.sizes(n.claims[0], n.claims[1]) {
			claim.What, claim.Found = n.what, fmt.Sprint(n.measured)
			add(claim, claim.Expected == claim.Found, n.measured > 0)
		}
	}
	return lines
}

// sizes returns a line for what the two files claim: one where they claim the same.
func (s *subject) sizes(config, genai modelconfig.Number) (lines []Line) {
	if config.Given() {
		lines = append(lines, line("", short(config.Value), s.claims.from(config.Key), ""))
	}
	if !genai.Given() {
		return lines
	}
	from := "genai_config.json: " + genai.Key
	if len(lines) == 1 && lines[0].Expected == short(genai.Value) {
		lines[0].From += " and " + from
		return lines
	}
	return append(lines, line("", short(genai.Value), from, ""))
}

func softcapText(c float64) string {
	if c == 0 {
		return "none"
	}
	return short(c)
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// short writes a number with six digits, whole ones in full.
func short(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.6g", x)
}
