package rewrite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// LayerEdit is a method for some layers only.
type LayerEdit struct {
	Spec   rope.Spec
	Layers func(int) bool // which sites, by their order in the graph; nil means by Type
	Type   string         // those of a type in config.json's layer_types
	Where  string         // the choice as the report says it, for example "layers 0-3"
}

// has says whether the edit is for a layer; types are config.json's.
func (e LayerEdit) has(layer int, types []string) bool {
	if e.Layers != nil {
		return e.Layers(layer)
	}
	return layer < len(types) && types[layer] == e.Type
}

func (e LayerEdit) String() string {
	return fmt.Sprintf("%v %v on %s", e.Spec.Axis, e.Spec, e.Where)
}

// editsOf returns the methods of one layer, axis by axis, of which each has one
// at most.
func (o Options) editsOf(layer int, types []string) ([]rope.Spec, error) {
	list := slices.Clone(o.Edits)
	for _, e := range o.LayerEdits {
		if e.has(layer, types) {
			list = append(list, e.Spec)
		}
	}
	slices.SortStableFunc(list, func(a, b rope.Spec) int { return cmp.Compare(a.Axis, b.Axis) })
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; a.Axis == b.Axis {
			return nil, fmt.Errorf("two methods of one axis are asked for, %v %v and %v", a.Axis, a, b)
		}
	}
	return list, nil
}

// checkLayerEdits refuses edits that no layer would get.
func (o Options) checkLayerEdits(layers int, config modelConfig) error {
	for _, e := range o.LayerEdits {
		if e.Layers == nil && len(config.LayerTypes) != layers {
			where := config.path
			if where == "" {
				where = "there is no config.json, so it"
			}
			return fmt.Errorf("%v goes by the types of layers, but %s names the types of %d layers and the model has %d", e, where, len(config.LayerTypes), layers)
		}
		used := false
		for layer := range layers {
			used = used || e.has(layer, config.LayerTypes)
		}
		if !used {
			return fmt.Errorf("%v: the model has no such layer", e)
		}
	}
	return nil
}
