package modelconfig

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Setting is something that a layer computes and for which transformers has no key.
type Setting struct {
	What string // for example "position map"
	Is   string // what it is in the layer
}

// Unsaid returns the settings of a layer for which the file has no key. Without such a key transformers computes a
// model that has none of them.
func (c Config) Unsaid(a rope.Attention) (list []Setting) {
	for _, s := range []struct {
		what string
		is   bool
		text string
	}{
		{"position map", len(a.Bands) > 1 || a.Chunk > 0, strings.Join(a.DescribePositions(), ", ")},
		{"drawn positions", a.Drawn != rope.Drawn{}, "positions drawn from a range"},
		{"first keys", a.Mask.FirstKeys > 0, fmt.Sprintf("the first %d keys stay visible", a.Mask.FirstKeys)},
		{"documents", a.Mask.Documents == rope.IntraDocument, "a query sees its own document"},
		{"documents", a.Mask.Documents == rope.AnchorDocument, "a query sees its own document and the anchor"},
		{"restarted positions", a.Mask.Restart, "positions restart in each document"},
		{"temperature", a.Temperature != rope.Temperature{} && c.temperature() == "", "scores grow with the query's position"},
	} {
		if s.is {
			list = append(list, Setting{s.what, s.text})
		}
	}
	return list
}

// temperature is the key that asks for a factor on scores by the query's position; "" where none does.
func (c Config) temperature() string {
	if key := c.LogN(); key != "" {
		return key
	}
	const llama4, ministral = "attn_temperature_tuning", "llama_4_scaling_beta"
	if on, _ := c.keys.flag(llama4); on || c.keys.number(llama4).Value != 0 {
		return llama4
	}
	return c.keys.object("rope_parameters").number(ministral).Key
}
