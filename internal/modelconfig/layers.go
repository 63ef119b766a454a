package modelconfig

import (
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
