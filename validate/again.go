package validate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// machine are the libraries and the worker of options.
func machine(o rewrite.Options) rewrite.Options {
	return rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: o.Evaluation.Runtime, Library: o.Evaluation.Library, Worker: o.Evaluation.Worker}}
}

// again adds to options what makes of an original the model that a record describes.
func again(r *provenance.Record, o rewrite.Options) (rewrite.Options, error) {
	o.Context.Length = r.Configuration.Context
	o.Target = rewrite.Target(r.Target)
	o.AllowUnchanged = len(r.Kept) > 0 || slices.ContainsFunc(r.Sites, func(s provenance.Site) bool { return rewrite.Form(s.Form) == rewrite.Rotary })
	if o.AllowUnchanged {
		var layers []int
		for _, s := range r.Sites {
			layers = append(layers, s.Layers...)
		}
		o.Layers = func(layer int) bool { return slices.Contains(layers, layer) }
	}
	if slices.ContainsFunc(r.Edits, func(e provenance.Edit) bool { return e.What == rope.ScalingAxis.String() }) {
		o.Numerics.Angles = "original" // unless its edits say otherwise
	}
	for _, e := range r.Edits {
		if err := addEdit(&o, e, r.Everywhere(e)); err != nil {
			return o, err
		}
	}
	return o, nil
}

// addEdit adds one edit of a record. every says that all layers that rotate have it; what only some have
// was not asked for, a method brings it along.
func addEdit(o *rewrite.Options, e provenance.Edit, every bool) (err error) {
	if axis, ok := axisOf(e); ok {
		return addMethod(o, axis, e)
	}
	switch e.What {
	case "angles":
		o.Numerics.Angles = "exact"
		if !every {
			o.Numerics.Angles = ""
		}
	case "cache":
		o.Cache.Raw = e.Given == "raw" && every
	case "precision":
		o.Numerics.Precision = e.Given
	case "documents":
		if token := e.Setting("token"); token.Kind() != rope.Absent {
			o.Documents.Separator = &rewrite.Separator{Token: token.Integer(), Ends: strings.HasSuffix(e.Given, ",ends")}
		} else {
			o.Documents.Input = e.Setting("input").String()
		}
	case "kv":
		if c := e.Setting("capacity"); c.Kind() != rope.Absent {
			o.Cache.Capacity, o.Cache.LengthInput = c.Integer(), e.Setting("input").String()
			o.Cache.Ring = e.Setting("ring").Equal(rope.Bool(true))
		}
		if t := e.Setting("type"); t.Kind() == rope.Word {
			o.Cache.Type = t.String()
		}
	case "logits":
		o.LogitsPlaces = e.Setting("input").String()
	case "opset":
		o.Output.OperatorSet, err = strconv.ParseInt(e.Given, 10, 64)
	case "fallback":
		o.Output.NoFallback = e.Given == "none"
	default:
		return fmt.Errorf("its record has a change of %s, which this version does not know", e.What)
	}
	return err
}

// addMethod adds a method for the layers that have it, even where these are all: a scaling for the
// whole model would leave some of them out.
func addMethod(o *rewrite.Options, axis rope.Axis, e provenance.Edit) error {
	spec, err := rope.ParseSpec(axis, e.Spec())
	if err != nil {
		return err
	}
	has := func(layer int) bool { return slices.Contains(e.Layers, layer) }
	o.LayerEdits = append(o.LayerEdits, rewrite.LayerEdit{Spec: spec, Layers: has, Where: "layers " + ranges.Text(e.Layers)})
	return nil
}
