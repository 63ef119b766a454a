package validate

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// held are the fixed scales of the patched model's caches, by the output of each; nil where it has none.
func (v *validation) held() map[string][]float32 {
	if v.scaled == nil {
		return nil
	}
	held := map[string][]float32{}
	for _, c := range v.scaled {
		held[c.Key], held[c.Value] = c.Scales.Key, c.Scales.Value
	}
	return held
}

// scalesByLayer are the same by layer, for a rewrite as the record says.
func (v *validation) scalesByLayer() (map[int]rewrite.CacheScales, error) {
	var layers []int
	for _, s := range v.record.Sites {
		if s.Cache != "none" {
			layers = append(layers, s.Layers...)
		}
	}
	slices.Sort(layers)
	if len(layers) != len(v.scaled) {
		return nil, fmt.Errorf("it has %d caches with fixed scales, and its record %d layers with a cache", len(v.scaled), len(layers))
	}
	scales := map[int]rewrite.CacheScales{}
	for i, layer := range layers {
		scales[layer] = v.scaled[i].Scales
	}
	return scales, nil
}
