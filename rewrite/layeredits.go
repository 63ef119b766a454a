package rewrite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
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

// AllLayers gives a method to every layer. A scaling in Options.Edits leaves
// layers with a window alone in models that have others too.
func AllLayers(spec rope.Spec) LayerEdit {
	return LayerEdit{Spec: spec, Layers: func(int) bool { return true }, Where: "all layers"}
}

// unscaledLayers returns the layers that a scaling for the whole model leaves alone:
// those with a window, in a model in which others see all keys. A longer context
// is nothing new to them, and transformers does not scale them. A layer whose
// type has a scaling of its own in config.json is not among them.
func unscaledLayers(found []measure.Attention, sites []Site, config modelConfig) map[int]bool {
	layers, others := map[int]bool{}, false
	types := config.LayerTypes
	if len(types) != len(sites) {
		types = make([]string, len(sites))
	}
	for i, s := range sites {
		others = others || s.Attention == nil && types[i] == "full_attention" // nothing was measured
	}
	for _, f := range found {
		if !f.Measured.Rotary() {
			continue
		}
		layer := sites[f.Index].Layer
		kind := types[layer]
		window := f.Measured.Attention.Mask.Window > 0
		if f.Measured.RotationOnly { // of which no mask is known
			window = kind == "sliding_attention"
		}
		if window && !config.ScaledTypes[kind] {
			layers[layer] = true
		} else {
			others = true
		}
	}
	if !others {
		return nil
	}
	return layers
}

// onUnwindowed follows a scaling that leaves the layers with a window alone.
const onUnwindowed = " on layers without a window, "

// describeEdits says what is done to the whole model and to single layers.
func (o Options) describeEdits(sites []Site, unscaled map[int]bool) ([]string, error) {
	texts := []string{}
	for _, spec := range o.Edits {
		text := spec.Axis.String() + " " + spec.String()
		if spec.Axis == rope.ScalingAxis && len(unscaled) > 0 {
			if !slices.ContainsFunc(sites, func(s Site) bool { return s.Status == Rewritten && !unscaled[s.Layer] }) {
				return nil, fmt.Errorf("%s is for layers without a window, where others have none, and each that is rewritten has one; write %v@all", text, spec)
			}
			text += fmt.Sprintf(onUnwindowed+"not on the %d with one (%v@all is for all)", len(unscaled), spec)
		}
		texts = append(texts, text)
	}
	for _, e := range o.LayerEdits {
		texts = append(texts, e.String())
	}
	return texts, nil
}

// editsOf returns the methods of one layer, axis by axis, of which each has one
// at most. unscaled leaves out a scaling for the whole model.
func (o Options) editsOf(layer int, types []string, unscaled bool) ([]rope.Spec, error) {
	list := slices.Clone(o.Edits)
	if unscaled {
		list = slices.DeleteFunc(list, func(s rope.Spec) bool { return s.Axis == rope.ScalingAxis })
	}
	for _, e := range o.LayerEdits {
		if e.has(layer, types) {
			list = append(list, e.Spec)
		}
	}
	slices.SortStableFunc(list, func(a, b rope.Spec) int { return cmp.Compare(a.Axis, b.Axis) })
	return list, oneOfEachAxis(list)
}

// oneOfEachAxis refuses two methods of one axis.
func oneOfEachAxis(list []rope.Spec) error {
	for i, b := range list {
		for _, a := range list[:i] {
			if a.Axis == b.Axis {
				return fmt.Errorf("two methods of one axis are asked for, %v %v and %v", a.Axis, a, b)
			}
		}
	}
	return nil
}

// checkLayerEdits refuses edits that no layer would get.
func (o Options) checkLayerEdits(layers int, config modelConfig) error {
	for _, e := range o.LayerEdits {
		if e.Layers == nil && len(config.LayerTypes) != layers {
			where := config.Path
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
