package plan

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/earlier"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Plan is what a model's sites become.
type Plan struct {
	Sites    []*Site
	Features []Feature
	Edits    []Edit // methods and features, in the words of reports
	Warnings []string
	Nothing  bool // the model is unchanged
}

// Edit says one thing that is done to the model, or to some of its layers.
type Edit struct {
	What  string // as a record says it
	Where string // what follows it in reports, where it is not for all layers
	Note  string // which layers a method for the whole model reaches, and why, as a record says it
}

func (e Edit) String() string { return e.What + e.Where }

// Conclude adds to the edits what the sites have become, and the target's text. Nothing is to be done
// where the model's own nodes may stay (keeps) and no method is asked for.
func (p *Plan) Conclude(target string, keeps bool) {
	if slices.ContainsFunc(p.Sites, (*Site).IsRaw) {
		p.Edits = append(p.Edits, Edit{What: "cache raw"})
	}
	if slices.ContainsFunc(p.Sites, (*Site).IsFast) {
		p.Edits = append(p.Edits, Edit{What: "precision " + Fast})
		if slices.ContainsFunc(p.Sites, func(s *Site) bool { return s.IsFast() && !s.Is16Bit() }) {
			p.Warn("--precision fast rounds a float32 model's prompts to bfloat16, where the CPU multiplies that: they are further from the original than float32's rounding (rope-rewrite drift shows how far)")
		}
	}
	p.Nothing = keeps && len(p.Edits) == 0 && !p.replaces()
	if target != "" && !p.Nothing {
		p.Edits = append(p.Edits, Edit{What: target})
	}
}

// Warn adds warnings that are not there.
func (p *Plan) Warn(warnings ...string) {
	for _, w := range warnings {
		if !slices.Contains(p.Warnings, w) {
			p.Warnings = append(p.Warnings, w)
		}
	}
}

// Changes returns the changes of all sites.
func (p *Plan) Changes() (list []lower.Change) {
	for _, s := range p.Sites {
		list = append(list, s.Change)
	}
	return list
}

// replaces reports whether a site is to compute something else than it does, or to do so by
// nodes other than the op that is there.
func (p *Plan) replaces() bool {
	return slices.ContainsFunc(p.Sites, func(s *Site) bool { return s.Changes() || s.Written != nil })
}

// Site is a site with what it is to compute.
type Site struct {
	measure.Attention
	Layer     int
	Reason    string // why it could not be measured as a whole, where its rotation alone was
	Want      rope.Attention
	Specs     []rope.Spec       // methods that make it what is wanted
	Applied   []provenance.Edit // the same, with every parameter resolved
	Written   *earlier.Op       // the op of an earlier rewrite that it is; nil for most
	Precision string            // of its products; "" leaves what is there
	Known     rope.Context      // of the model, as far as it holds for the site
	Extra     lower.ExtraInputs // what the features give it
	Scales    *contrib.Scales   // fixed ones of its caches, which are to be int8; nil for most
	Binding   lower.Binding     // of the op, where there is to be one

	Form       lower.Form
	FormReason string
	Change     lower.Change
}

// Changes reports whether the site is to compute something else than it does.
func (s *Site) Changes() bool { return !reflect.DeepEqual(s.Want, s.Measured.Attention) }

// Becomes returns the change by which the nodes and constants take the place of the site.
func (s *Site) Becomes(nodes []*onnx.Node, constants []*onnx.Tensor) lower.Change {
	return lower.Change{Scope: s.Scope, Site: s.Site, Mask: s.Measured.Mask, Reads: s.Want.Mask, Positions: s.Binding.Positions(),
		Nodes: nodes, Constants: constants}
}

// Is16Bit reports whether the site's queries are in 16 bits.
func (s *Site) Is16Bit() bool { return ir.Is16Bit(s.Scope.View.Element(s.Site.Query.Boundary)) }

// IsFast reports whether the site becomes an op, or an inlined fallback, that rounds before the product.
func (s *Site) IsFast() bool {
	op, _ := s.Change.Op()
	return op != nil && s.Form != lower.GroupQuery && op.Precision == Fast
}

// IsRaw reports whether the site's keys are to be cached un-rotated, and were not before.
func (s *Site) IsRaw() bool {
	return s.Want.Cache == rope.Raw && s.Measured.Attention.Cache != rope.Raw && s.Measured.Layouts.Cached
}

// The words for the precision of an op's products.
const (
	Exact = "exact"
	Fast  = "fast"
)

// Feature is what a rewrite adds to a model besides methods.
type Feature struct {
	Edit  provenance.Edit                  // the feature as report and record say it
	Extra func(*Site) error                // adds it to a site; nil adds nothing
	Check func([]*Site) error              // refuses what was planned; nil refuses nothing
	Write func(*onnx.Model, []*Site) error // changes the model, after its sites were written
}

// LayerError says that a method does not fit a layer, or lacks a parameter.
type LayerError struct {
	Layer int // WholeModel when it is no matter of one layer
	Err   error
}

// WholeModel is the Layer of an error that concerns all layers.
const WholeModel = -1

func (e *LayerError) Error() string {
	if e.Layer == WholeModel {
		return e.Err.Error()
	}
	return fmt.Sprintf("layer %d: %v", e.Layer, e.Err)
}

func (e *LayerError) Unwrap() error { return e.Err }

// Check lets the features refuse what was planned.
func (p *Plan) Check() error {
	for _, f := range p.Features {
		if f.Check == nil || len(p.Sites) == 0 {
			continue
		}
		if err := f.Check(p.Sites); err != nil {
			return &LayerError{WholeModel, Of(f.Edit.What, err)}
		}
	}
	return nil
}

// AddExtras gives each site what the features add, and refuses a mask by document ids where there
// will be none. Cross-attention gets nothing: features are about the model's own tokens.
func (p *Plan) AddExtras() error {
	for _, s := range p.Sites {
		for _, f := range p.Features {
			if s.Want.Cross || f.Extra == nil {
				continue
			}
			if err := f.Extra(s); err != nil {
				return &LayerError{s.Layer, Of(f.Edit.What, err)}
			}
		}
		if s.Want.Mask.Documents != rope.NoDocuments && s.Extra.Documents == "" {
			err := errors.New("the mask uses document ids, which the graph does not have; give --documents input, which adds them as an input of the patched model, or --documents separator:TOKEN")
			return &LayerError{s.Layer, Of(rope.MaskAxis.String(), err)}
		}
	}
	return nil
}
