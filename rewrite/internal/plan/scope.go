package plan

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// scope says which layers a scaling for the whole model reaches.
type scope struct {
	skipped map[int]bool // nil where it reaches all that rotate
	why     string       // why it skips them, or reaches windowed layers beside others; "" where there is nothing to say
}

// scalingScope finds which layers a scaling for the whole model reaches: those that have one rotary
// embedding with the layers that see all keys, as transformers scales them. Windowed layers with the
// same frequencies share it. Those with others have an embedding of their own, to which a longer context is
// nothing new. Where no layer without a window rotates, the windowed ones are scaled. What
// config.json says of types of layers goes before the frequencies.
func scalingScope(a *analysis.Analysis, config Config) scope {
	layers := layersOf(a, config)
	var windowed []*analysis.Site
	var full *rope.Encoding // of a layer without a window
	unmeasured := false     // such a layer may rotate
	for i, s := range a.Sites {
		unmeasured = unmeasured || s.Attention == nil && layers[i].kind == "full_attention"
	}
	for _, s := range a.Measured() {
		switch e := &s.Attention.Measured.Attention.Encoding; {
		case !s.Attention.Measured.Rotary():
		case layers[s.Layer].windowed:
			windowed = append(windowed, s)
		case full == nil:
			full = e
		}
	}
	if len(windowed) == 0 || full == nil && !unmeasured {
		return scope{}
	}
	byType := config.AttentionTypes(len(a.Sites)) != nil && len(config.TypedParameters) > 0
	out := scope{skipped: map[int]bool{}}
	shared := 0
	for _, s := range windowed {
		switch e := s.Attention.Measured.Attention.Encoding; {
		case byType && config.ScaledTypes[layers[s.Layer].kind]:
		case full == nil || !sameFrequencies(*full, e):
			out.skipped[s.Layer], out.why = true, "their frequencies differ"
		case byType:
			out.skipped[s.Layer], out.why = true, "config.json gives their type its own rotation"
		case config.FullScaled:
			out.skipped[s.Layer], out.why = true, "models of this type scale only full-attention layers"
		default:
			shared++
		}
	}
	if len(out.skipped) > 0 {
		return out
	}
	if shared > 0 {
		return scope{why: fmt.Sprintf("the %d with a window have the frequencies of the others", shared)}
	}
	return scope{}
}

// sameFrequencies reports whether two layers share one rotary embedding, as far as frequencies tell.
func sameFrequencies(a, b rope.Encoding) bool {
	if len(a.Frequencies) != len(b.Frequencies) {
		return false
	}
	for i, f := range a.Frequencies {
		if math.Abs(f-b.Frequencies[i]) > 1e-5*math.Abs(f) { // measured ones are known to float32
			return false
		}
	}
	return true
}
