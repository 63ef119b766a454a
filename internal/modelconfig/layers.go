package modelconfig

import (
	"cmp"
	"maps"
	"math"
	"strconv"
)

// Types of layers as transformers names them.
const (
	sliding = "sliding_attention"
	full    = "full_attention"
	linear  = "linear_attention"
	hybrid  = "hybrid" // attention beside a state space
)

// layerType returns the type of a layer, "" where the file does not say.
func (c Config) layerType(layer int) string {
	if layer < len(c.LayerTypes) {
		return c.LayerTypes[layer]
	}
	if n := c.keys.number("sliding_window_pattern", "_sliding_window_pattern"); n.Value >= 1 {
		return either(math.Mod(float64(layer+1), n.Value) == 0, full, sliding)
	}
	if n := c.keys.number("global_attn_every_n_layers"); n.Value >= 1 {
		return either(math.Mod(float64(layer), n.Value) == 0, full, sliding)
	}
	return ""
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// nope says of a layer whether it turns nothing, and by which key.
func (c Config) nope(layer int) (none bool, key string) {
	if list := c.keys.numbers("no_rope_layers"); layer < len(list) {
		return list[layer] == 0, "no_rope_layers"
	}
	if list := c.keys.numbers("layer_rope_theta"); layer < len(list) {
		return list[layer] == 0, "layer_rope_theta"
	}
	if n := c.keys.number("no_rope_layer_interval"); n.Value >= 1 {
		return math.Mod(float64(layer+1), n.Value) == 0, n.Key
	}
	return false, ""
}

// Window is what the file says of one layer's window.
type Window struct {
	Key   string // "" where it says nothing
	Value int64  // keys that a query sees, itself included; 0 claims that there is no window

	// Some says that the file does not tell which layers have the window: one of them must.
	Some   bool
	Unread string // why what stands there cannot be compared
}

// Window returns what the file says of a layer, by its number.
func (c Config) Window(layer int) Window {
	if c.ignoresWindow() {
		return Window{}
	}
	window := c.keys.number("sliding_window", "interleaved_sliding_window")
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
	case !window.Given() && c.keys.number("local_attention").Given():
		return Window{Key: "local_attention", Unread: "its window extends to both sides"}
	case !window.Given():
		return Window{}
	}
	out := Window{Key: window.Key, Value: int64(window.Value)}
	if kind == sliding {
		return out
	}
	if most := c.keys.number("max_window_layers"); most.Given() {
		if float64(layer) < most.Value {
			return Window{Key: most.Key}
		}
		return out
	}
	out.Some = windows[c.keys.text("model_type")] != everyLayer
	return out
}

// OfLayer is what the file says of one layer where per_layer_config has keys of its own for it.
func (c Config) OfLayer(layer int) Config {
	own := c.keys.object("per_layer_config").object(strconv.Itoa(layer))
	if len(own) == 0 {
		return c
	}
	c.keys = maps.Clone(c.keys)
	maps.Copy(c.keys, own)
	return c
}
