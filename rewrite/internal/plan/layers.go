package plan

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// LayerEdit is a method for some layers only.
type LayerEdit struct {
	Spec   rope.Spec
	Layers func(int) bool // which sites, by their order in the graph; nil means by Type or Kind
	Type   string         // those of a type in config.json's layer_types
	Kind   LayerKind      // those that are measured to be of a kind
	Where  string         // the choice as the report says it, for example "layers 0-3"
}

// LayerKind is a kind of layers in a model of which some have a window. "" is none.
type LayerKind string

const (
	FullAttention LayerKind = "full"     // every query sees all keys before it
	Windowed      LayerKind = "windowed" // it sees the nearest ones
)

// layer is what methods may be chosen by.
type layer struct {
	number   int
	kind     string // its type in config.json; "" where that does not say
	windowed bool
}

// has says whether the edit is for a layer.
func (e LayerEdit) has(l layer) bool {
	switch {
	case e.Layers != nil:
		return e.Layers(l.number)
	case e.Kind != "":
		return (e.Kind == Windowed) == l.windowed
	}
	return l.kind == e.Type && e.Type != ""
}

// edit returns the edit in the words of reports.
func (e LayerEdit) edit() Edit { return Edit{What: text(e.Spec), Where: " on " + e.Where} }

func (e LayerEdit) String() string { return e.edit().String() }

// text is a method as records and reports say it.
func text(spec rope.Spec) string { return spec.Axis.String() + " " + spec.String() }

// layersOf returns the layers of a model.
func layersOf(a *analysis.Analysis, config Config) []layer {
	list := make([]layer, len(a.Sites))
	types := config.AttentionTypes(len(list))
	for i := range list {
		list[i].number = i
		if types != nil {
			list[i].kind = types[i]
		}
	}
	for _, s := range a.Measured() {
		l, measured := &list[s.Layer], s.Attention.Measured
		l.windowed = measured.Attention.Mask.Window > 0
		if measured.RotationOnly { // of which no mask is known
			l.windowed = l.kind == "sliding_attention"
		}
	}
	return list
}

// describe says what is done to the whole model and to single layers.
func (m Methods) describe(a *analysis.Analysis, reach scope) ([]Edit, error) {
	var list []Edit
	for _, spec := range m.Edits {
		edit := Edit{What: text(spec)}
		switch {
		case spec.Axis != rope.ScalingAxis || reach.why == "":
		case len(reach.skipped) == 0:
			edit.Note = fmt.Sprintf("%s (%v@%s scales only those without a window)", reach.why, spec, FullAttention)
			edit.Where = " on all layers: " + edit.Note
		default:
			if !slices.ContainsFunc(a.Sites, func(s analysis.Site) bool { return s.Unchanged == "" && !reach.skipped[s.Layer] }) {
				return nil, ofMethod(spec, "", fmt.Errorf("%s skips sliding-window layers (%s), and every layer to be rewritten has a window; write %v@all", edit.What, reach.why, spec))
			}
			not := fmt.Sprintf("not on the %d with a window: %s (%v@all scales all)", len(reach.skipped), reach.why, spec)
			edit.Where, edit.Note = " on layers without a window, "+not, "those without a window, "+not
		}
		list = append(list, edit)
	}
	layers := layersOf(a, m.Config)
	for _, e := range m.LayerEdits {
		if e.Kind != "" && !slices.ContainsFunc(layers, e.has) {
			return nil, ofMethod(e.Spec, e.Where, fmt.Errorf("%v: the model has no such layer", e))
		}
		list = append(list, e.edit())
	}
	return list, nil
}

// of returns the methods of one layer in the order in which they are applied. unscaled leaves out a scaling for the whole model.
func (m Methods) of(l layer, unscaled bool) ([]rope.Spec, error) {
	list := slices.Clone(m.Edits)
	if unscaled {
		list = slices.DeleteFunc(list, func(s rope.Spec) bool { return s.Axis == rope.ScalingAxis })
	}
	for _, e := range m.LayerEdits {
		if e.has(l) {
			list = append(list, e.Spec)
		}
	}
	slices.SortStableFunc(list, rope.CompareOrder)
	return list, Combine(list)
}

// Combine refuses methods that do not go together.
func Combine(list []rope.Spec) error {
	for i, b := range list {
		for _, a := range list[:i] {
			if err := rope.CheckTogether(a, b); err != nil {
				return ofMethod(b, "", err)
			}
		}
	}
	return nil
}

// CheckLayers refuses edits that no layer of a model would get, as far as that is seen before anything
// is measured.
func (m Methods) CheckLayers(layers int) error {
	types := m.Config.AttentionTypes(layers)
	for _, e := range m.LayerEdits {
		if e.Type != "" && types == nil {
			where := m.Config.Path
			if where == "" {
				where = "there is no config.json, so it"
			}
			return ofMethod(e.Spec, e.Where, fmt.Errorf("%v needs the types of layers, but %s names the types of %d layers and the model has %d", e, where, len(m.Config.LayerTypes), layers))
		}
		used := e.Kind != ""
		for i := range layers {
			l := layer{number: i}
			if e.Type != "" {
				l.kind = types[i]
			}
			used = used || e.has(l)
		}
		if !used {
			return ofMethod(e.Spec, e.Where, fmt.Errorf("%v: the model has no such layer", e))
		}
	}
	return nil
}
