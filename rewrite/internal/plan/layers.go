package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
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

// edit returns the edit in the words of reports.
func (e LayerEdit) edit() Edit { return Edit{What: text(e.Spec), Where: " on " + e.Where} }

func (e LayerEdit) String() string { return e.edit().String() }

// text is a method as records and reports say it.
func text(spec rope.Spec) string { return spec.Axis.String() + " " + spec.String() }

// unscaledLayers returns the layers that a scaling for the whole model skips:
// those with a window, in a model in which others see all keys. A longer context
// is nothing new to them, and transformers does not scale them. A layer whose
// type has a scaling of its own in config.json is not among them.
func unscaledLayers(a *analysis.Analysis, config Config) map[int]bool {
	layers, others := map[int]bool{}, false
	types := config.LayerTypes
	if len(types) != len(a.Sites) {
		types = make([]string, len(a.Sites))
	}
	for i, s := range a.Sites {
		others = others || s.Attention == nil && types[i] == "full_attention" // nothing was measured
	}
	for _, s := range a.Measured() {
		measured := s.Attention.Measured
		if !measured.Rotary() {
			continue
		}
		kind := types[s.Layer]
		window := measured.Attention.Mask.Window > 0
		if measured.RotationOnly { // of which no mask is known
			window = kind == "sliding_attention"
		}
		if window && !config.ScaledTypes[kind] {
			layers[s.Layer] = true
		} else {
			others = true
		}
	}
	if !others {
		return nil
	}
	return layers
}

// describe says what is done to the whole model and to single layers.
func (m Methods) describe(a *analysis.Analysis, unscaled map[int]bool) ([]Edit, error) {
	var list []Edit
	for _, spec := range m.Edits {
		edit := Edit{What: text(spec)}
		if spec.Axis == rope.ScalingAxis && len(unscaled) > 0 {
			if !slices.ContainsFunc(a.Sites, func(s analysis.Site) bool { return s.Unchanged == "" && !unscaled[s.Layer] }) {
				return nil, fmt.Errorf("%s skips sliding-window layers, since others have no window, and every layer to be rewritten has one; write %v@all", edit.What, spec)
			}
			edit.Where = " on layers without a window, "
			edit.Note = fmt.Sprintf("not on the %d with a window (%v@all scales all)", len(unscaled), spec)
		}
		list = append(list, edit)
	}
	for _, e := range m.LayerEdits {
		list = append(list, e.edit())
	}
	return list, nil
}

// of returns the methods of one layer, axis by axis, of which each has one
// at most. unscaled leaves out a scaling for the whole model.
func (m Methods) of(layer int, unscaled bool) ([]rope.Spec, error) {
	list := slices.Clone(m.Edits)
	if unscaled {
		list = slices.DeleteFunc(list, func(s rope.Spec) bool { return s.Axis == rope.ScalingAxis })
	}
	for _, e := range m.LayerEdits {
		if e.has(layer, m.Config.LayerTypes) {
			list = append(list, e.Spec)
		}
	}
	slices.SortStableFunc(list, func(a, b rope.Spec) int { return cmp.Compare(a.Axis, b.Axis) })
	return list, OneOfEachAxis(list)
}

// OneOfEachAxis refuses two methods of one axis.
func OneOfEachAxis(list []rope.Spec) error {
	for i, b := range list {
		for _, a := range list[:i] {
			if a.Axis == b.Axis {
				return fmt.Errorf("two methods of one axis are asked for, %v %v and %v", a.Axis, a, b)
			}
		}
	}
	return nil
}

// CheckLayers refuses edits that no layer of a model would get.
func (m Methods) CheckLayers(layers int) error {
	for _, e := range m.LayerEdits {
		if e.Layers == nil && len(m.Config.LayerTypes) != layers {
			where := m.Config.Path
			if where == "" {
				where = "there is no config.json, so it"
			}
			return fmt.Errorf("%v goes by the types of layers, but %s names the types of %d layers and the model has %d", e, where, len(m.Config.LayerTypes), layers)
		}
		used := false
		for layer := range layers {
			used = used || e.has(layer, m.Config.LayerTypes)
		}
		if !used {
			return fmt.Errorf("%v: the model has no such layer", e)
		}
	}
	return nil
}
