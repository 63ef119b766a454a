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
	for _, e := range r.Edits {
		switch e.What {
		case "angles":
			add("exact-angles", "true")
		case rope.ScalingAxis.String(), rope.PositionsAxis.String(), rope.MaskAxis.String():
			spec := e.Spec()
			if len(e.Layers) < r.Rewritten() && e.Note == "" {
				spec += "@" + ranges.Text(e.Layers)
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
