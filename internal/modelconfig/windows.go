package modelconfig

import (
	"cmp"
	"math"
)

// windowed says how configurations of a type of models give layers a window.
type windowed int

const (
	everyLayer  windowed = iota + 1 // sliding_window is for all layers
	upperLayers                     // use_sliding_window switches it on, from layer max_window_layers on or by layer_types
	byTypes                         // layer_types say which layers have it, and more than that
)

// windows says by model_type which configurations of transformers have a window, and how. Others that interleaves
// names ignore the key. Types that neither names may have code of their own.
var windows = map[string]windowed{
	"mistral": everyLayer, "mixtral": everyLayer, "phi3": everyLayer, "starcoder2": everyLayer,
	"qwen2": upperLayers, "qwen3": upperLayers,
	"gemma2": byTypes, "gemma3_text": byTypes, "cohere2": byTypes, "gpt_oss": byTypes, "olmo3": byTypes, "vaultgemma": byTypes,
}

// ignoresWindow says whether transformers passes over sliding_window.
func (c Config) ignoresWindow() bool {
	kind := c.keys.text("model_type")
	_, known := interleaves[kind]
	return known && windows[kind] == 0
}

// bothSides are the other types whose layers may see keys on both sides within a window.
var bothSides = map[string]bool{
	"embedding_gemma2_text": true, "gemma4_text": true, "modernbert": true, "neomme": true, "openai_privacy_filter": true, "ultrabert": true,
}

// Window is what the file says of one layer's window.
type Window struct {
	Key   string // "" where it says nothing
	Value int64  // 0 claims that there is no window

	// Some says that the file does not tell which layers have the window: one of them must.
	Some    bool
	Unread  string // why what stands there cannot be compared
	foreign bool   // of a type whose code is not transformers'
}

// Spans returns the windows that a layer may have for the claim to hold, as rope.Mask.Window says them: the first distance
// from which keys are hidden. With transformers a causal layer sees the keys with i − j < Value, and one that sees both
// sides those with |i − j| ≤ Value. Code of another origin may take < for both.
func (w Window) Spans(causal bool) []int64 {
	switch {
	case causal || w.Value == 0:
		return []int64{w.Value}
	case w.foreign:
		return []int64{w.Value + 1, w.Value}
	}
	return []int64{w.Value + 1}
}

// Window returns what the file says of a layer, by its number.
func (c Config) Window(layer int) Window {
	if c.ignoresWindow() {
		return Window{}
	}
	c = c.OfLayer(layer)
	window := c.size()
	none := Window{Key: "sliding_window"}
	if on, given := c.keys.flag("use_sliding_window"); given && !on {
		none.Key = "use_sliding_window"
		return none
	}
	kind := c.layerType(layer)
	switch {
	case kind == full, kind == hybrid:
		return Window{Key: cmp.Or(c.typesKey, "layer_types")}
	case kind == "chunked_attention":
		return Window{Key: c.typesKey, Unread: "keys are visible by chunks, not by a window"}
	case kind != "" && kind != sliding:
		return Window{Key: c.typesKey, Unread: "the mask of layers of type " + kind + " is not known here"}
	case c.keys.null("sliding_window"):
		return none
	case !window.Given():
		return Window{}
	}
	how := windows[c.keys.text("model_type")]
	out := Window{Key: window.Key, Value: int64(window.Value), foreign: how == 0 && !bothSides[c.keys.text("model_type")]}
	if kind == sliding {
		return out
	}
	if most := c.keys.number("max_window_layers"); most.Given() {
		if float64(layer) < most.Value {
			return Window{Key: most.Key}
		}
		return out
	}
	out.Some = how != everyLayer
	return out
}

// size is the number that transformers makes its mask of. The whole width of a window stands in local_attention, and in
// sliding_window where a switch makes Gemma's layers see both sides.
func (c Config) size() Number {
	n := c.keys.number("sliding_window", "interleaved_sliding_window")
	both, _ := c.keys.flag("use_bidirectional_attention")
	switch {
	case n.Given() && both && c.keys.text("model_type") == "gemma3_text":
		return Number{n.Key + " / 2", math.Floor(n.Value / 2)}
	case n.Given() && c.keys.text("use_bidirectional_attention") == "all" && c.keys.text("model_type") == "gemma4_text":
		return Number{n.Key + " / 2 + 1", math.Floor(n.Value/2) + 1}
	case !n.Given():
		if whole := c.keys.number("local_attention"); whole.Given() {
			return Number{whole.Key + " / 2", math.Floor(whole.Value / 2)}
		}
	}
	return n
}
