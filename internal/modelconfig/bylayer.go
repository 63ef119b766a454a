package modelconfig

import (
	"maps"
	"strconv"
)

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
