package modelfolder

import (
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// meaningOf reads from a report what a configuration can say of the model.
// context are the tokens that it is meant for, 0 if not given.
func meaningOf(report *rewrite.Report, context int64) (now modelconfig.Meaning) {
	r := report.Record
	if r == nil || len(r.Edits) == 0 {
		return now
	}
	layers := layersOf(report)
	for _, e := range r.Edits {
		name, _, _ := strings.Cut(e.Given, ":")
		for _, i := range e.Layers {
			layers[i].Now = edited(layers[i].Now, e, r.Configuration)
		}
		switch e.What {
		case rope.ScalingAxis.String():
			if m, err := rope.Lookup(rope.ScalingAxis, name); err != nil || m.Part == rope.TemperaturePart {
				continue // which scales no frequencies
			}
			scaling := &modelconfig.Scaling{Name: name, Used: e.Settings}
			for _, i := range e.Layers {
				if layers[i].Scaling != nil { // base=carried: this one starts from what an earlier one made
					layers[i].Base = 0
				}
				layers[i].Scaling = scaling
			}
			if reach := reachOf(e, r.Configuration.Trained); reach > 0 {
				now.Context = reach
			}
		case rope.MaskAxis.String():
			window := e.Setting("window").Integer()
			if name != "sliding-window" || window == 0 {
				continue
			}
			for _, i := range e.Layers {
				l := &layers[i]
				if l.Window <= 0 || l.Window > window {
					l.Window = window
				}
				l.Masked = true
			}
		}
	}
	if context > 0 {
		now.Context = context
	}
	now.Layers = ofOneGraph(report, layers)
	return now
}

// edited returns what a layer computes with one more method; nil where that is not known.
func edited(a *rope.Attention, e provenance.Edit, c provenance.Configuration) *rope.Attention {
	for _, axis := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
		if e.What != axis.String() || a == nil {
			continue
		}
		spec, err := rope.ParseSpec(axis, e.Spec())
		if err != nil {
			return nil
		}
		known := rope.Context{Length: c.Context, Original: c.Trained, Theta: c.Theta}
		known.Reachable = rope.Reachable(nil, known)
		now, _, err := spec.Apply(*a, known)
		if err != nil {
			return nil
		}
		return &now
	}
	return a
}

// reachOf is how many tokens a scaling reaches, 0 where it has no factor.
func reachOf(e provenance.Edit, trained int64) int64 {
	factor, original := e.Setting("factor").Numbers(), e.Setting("original_max_position_embeddings").Integer()
	if original == 0 {
		original = trained
	}
	if len(factor) != 1 {
		return 0
	}
	return int64(factor[0] * float64(original))
}

// layersOf returns the layers of a model as they were before any method.
func layersOf(report *rewrite.Report) []modelconfig.Layer {
	layers := make([]modelconfig.Layer, len(report.Sites))
	fill := func(i int, a rope.Attention, rotationOnly bool) {
		l := &layers[i]
		l.Turns = len(a.Encoding.Frequencies) > 0
		l.Base, _ = a.Encoding.Base()
		l.Gaps = a.Encoding.Turning() < len(a.Encoding.Frequencies)
		l.Window = a.Mask.Window
		l.Was, l.Now = &a, &a
		if rotationOnly || a.Cross {
			l.Window = -1
		}
	}
	for i, s := range report.Sites {
		layers[i].Window = -1
		if s.Attention != nil {
			fill(i, *s.Attention, s.RotationOnly)
		}
	}
	for _, s := range report.Record.Sites { // of a model that was rewritten before, its original
		for _, i := range s.Layers {
			fill(i, s.Original, s.RotationOnly)
		}
	}
	return layers
}

// ofOneGraph returns the layers of the graph that has most of them: a model may have its layers twice, in
// branches for the first call and for later ones.
func ofOneGraph(report *rewrite.Report, layers []modelconfig.Layer) (most []modelconfig.Layer) {
	scopes := map[string][]modelconfig.Layer{}
	for i, s := range report.Sites {
		scopes[s.Scope] = append(scopes[s.Scope], layers[i])
		if list := scopes[s.Scope]; len(list) > len(most) {
			most = list
		}
	}
	return most
}
