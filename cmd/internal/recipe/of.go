package recipe

import (
	"slices"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Of is the recipe that makes a model what its record says. Parameters that came from the
// configuration of the original are written out, so that the recipe does not depend on it.
func Of(r *provenance.Record) *Recipe {
	out := &Recipe{}
	add := func(name, value string) { out.Flags = append(out.Flags, Flag{Name: name, Value: value}) }
	if n := r.Configuration.Context; n > 0 {
		add("context", strconv.FormatInt(n, 10))
	}
	if a := angles(r); a != "" {
		add("angles", a)
	}
	for _, e := range r.Edits {
		switch e.What {
		case "angles":
		case "cache":
			if r.Everywhere(e) { // what only some layers have comes with a method
				add(e.What, e.Given)
			}
		case rope.ScalingAxis.String(), rope.PositionsAxis.String(), rope.MaskAxis.String():
			spec := e.Spec()
			switch every := len(e.Layers) == r.Rewritten(); {
			case e.Note != "":
			case !every:
				spec += "@" + ranges.Text(e.Layers)
			case e.What == rope.ScalingAxis.String() && windowed(r):
				spec += "@all" // without it some layers would not get it
			}
			add(e.What, spec)
		default:
			add(e.What, e.Given)
		}
	}
	place := map[string]int{} // the values of one key stand together
	for i, f := range out.Flags {
		if _, ok := place[f.Name]; !ok {
			place[f.Name] = i
		}
	}
	slices.SortStableFunc(out.Flags, func(a, b Flag) int { return place[a.Name] - place[b.Name] })
	if r.Target != "ops" {
		add("target", r.Target)
	}
	if len(r.Kept) > 0 {
		var layers []int
		for _, s := range r.Sites {
			layers = append(layers, s.Layers...)
		}
		slices.Sort(layers)
		add("layers", ranges.Text(layers))
	}
	return out
}

// windowed reports whether some layers have a window and others have none.
func windowed(r *provenance.Record) bool {
	window := func(s provenance.Site) bool { return s.Original.Mask.Window > 0 }
	return slices.ContainsFunc(r.Sites, window) && slices.ContainsFunc(r.Sites, func(s provenance.Site) bool { return !window(s) })
}

// angles says how angles are rounded where that is not the default, exact in the layers with a scaling.
func angles(r *provenance.Record) string {
	var scaled, exact []int
	everywhere := false
	for _, e := range r.Edits {
		switch e.What {
		case rope.ScalingAxis.String():
			scaled = append(scaled, e.Layers...)
		case "angles":
			exact, everywhere = e.Layers, r.Everywhere(e)
		}
	}
	slices.Sort(scaled)
	byDefault := r.Target != "onnx"
	switch {
	case byDefault && slices.Equal(scaled, exact):
		return ""
	case everywhere:
		return "exact"
	case byDefault && exact == nil:
		return "original"
	}
	return "" // scalings of some layers brought it along
}
