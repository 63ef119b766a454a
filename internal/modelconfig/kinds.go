package modelconfig

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Between attention layers some models have others: convolutions, state spaces, linear attention. A
// file counts them all, and a graph is searched for attention alone. So attention layers are
// numbered by their types.

// kinds returns the type of each layer, nil where no key says it for all, and that key.
func (k keys) kinds() (types []string, key string) {
	for _, name := range []string{"layer_types", "layers_block_type"} {
		if json.Unmarshal(k[name], &types) == nil && len(types) > 0 {
			for i, kind := range types {
				if kind == "attention" { // as it was called first
					types[i] = full
				}
			}
			return types, name
		}
	}
	each := func(key string, attends func(layer int) bool) ([]string, string) {
		for i := range k.layers() {
			types = append(types, either(attends(i), full, linear))
		}
		return types, key
	}
	var cycle []string
	if json.Unmarshal(k["block_types"], &cycle) == nil && len(cycle) > 0 {
		return each("block_types", func(i int) bool { return attends(cycle[i%len(cycle)]) })
	}
	for _, name := range []string{"full_attn_idxs", "attn_layer_indices"} {
		if list := k.numbers(name); list != nil {
			return each(name, func(i int) bool { return slices.Contains(list, float64(i)) })
		}
	}
	if n := k.number("full_attention_interval"); n.Value >= 1 {
		return each(n.Key, func(i int) bool { return math.Mod(float64(i+1), n.Value) == 0 })
	}
	if n := k.number("attn_layer_period"); n.Value >= 1 {
		offset := k.number("attn_layer_offset").Value
		return each(n.Key, func(i int) bool { return math.Mod(float64(i), n.Value) == offset })
	}
	return nil, ""
}

// attends says whether layers of a type have a softmax over a product of query and key.
func attends(kind string) bool {
	return kind == "" || kind == hybrid || strings.Contains(kind, "attention") && kind != linear
}

// attention returns the numbers of the layers with attention.
func (c Config) attention() (numbers []int) {
	for i := range c.Layers() {
		if attends(c.layerType(i)) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// AttentionTypes returns the types of the attention layers where the file names as many as a graph
// has; nil where it does not.
func (c Config) AttentionTypes(count int) (types []string) {
	for _, kind := range c.LayerTypes {
		if attends(kind) {
			types = append(types, kind)
		}
	}
	if len(types) != count {
		return nil
	}
	return types
}

// LayerOf returns the number in the file of the attention layer at a place of a graph that has count
// of them. Where the file has another count, it is known only as far as the file says the same of all
// layers: said is what it says of one, nil where that layer does not matter.
func (c Config) LayerOf(place, count int, said func(layer int) any) (n int, known bool) {
	return c.layersOf(count, said)(place)
}

// layersOf is LayerOf for all places. It asks what the file says of its layers once: they may be many.
func (c Config) layersOf(count int, said func(layer int) any) func(place int) (n int, known bool) {
	if c.Layers() == 0 {
		return func(place int) (int, bool) { return place, true }
	}
	numbers := c.attention()
	if len(numbers) == count {
		return func(place int) (int, bool) { return numbers[place], true }
	}
	first, same := -1, true
	var saidFirst any
	for _, i := range numbers {
		what := said(i)
		switch {
		case what == nil:
		case first < 0:
			first, saidFirst = i, what
		default:
			same = reflect.DeepEqual(what, saidFirst)
		}
		if !same {
			break
		}
	}
	return func(int) (int, bool) { return max(first, 0), first >= 0 && same }
}
