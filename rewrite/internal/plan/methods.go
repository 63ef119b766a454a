package plan

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/earlier"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// How angles are rounded: exactly in all layers, exactly in those whose frequencies are scaled, or as the exporter
// does.
const (
	ExactAngles    = "exact"
	ScaledAngles   = "scaled"
	OriginalAngles = "original"
)

// Methods are the methods that sites are asked to have.
type Methods struct {
	Edits      []rope.Spec  // for the whole model; of an axis they set different parts
	LayerEdits []LayerEdit  // for single layers
	Context    rope.Context // what methods need to know of the model
	Angles     string       // one of the above
	RawCache   bool         // cache keys un-rotated
	Precision  string       // of products; "" leaves what is there
	Config     Config       // what config.json says

	Earlier  *earlier.Rewrite // nil for a model that was not rewritten before
	Carried  bool             // start from the values in the graph
	Restored bool             // the earlier methods are taken back: none is missed
	OwnMasks bool             // masks are written into the model's own nodes, which cannot give another one back

	rotates bool // some layer of the model does: methods for rotations leave the others
}

// All returns every method that is asked for.
func (m Methods) All() []rope.Spec {
	list := slices.Clone(m.Edits)
	for _, e := range m.LayerEdits {
		list = append(list, e.Spec)
	}
	return list
}

// OnlyMasks reports whether a mask is asked for and nothing that needs a
// rotation: attention without one can have it.
func (m Methods) OnlyMasks() bool {
	list := m.All()
	return len(list) > 0 && !slices.ContainsFunc(list, func(s rope.Spec) bool { return s.Axis != rope.MaskAxis })
}

// Carry reports whether a method asks to start from the values in the graph (base=carried).
func (m Methods) Carry() bool {
	return slices.ContainsFunc(m.All(), func(s rope.Spec) bool { return s.Params[rope.BaseParam].Equal(rope.Text("carried")) })
}

// Make applies the methods to the sites that can be rewritten. The features are told in the plan's edits.
func (m Methods) Make(a *analysis.Analysis, features []Feature) (*Plan, error) {
	p := &Plan{Features: features}
	m.rotates = slices.ContainsFunc(a.Measured(), func(s *analysis.Site) bool { return s.Attention.Measured.Rotary() })
	reach, layers := scalingScope(a, m.Config), layersOf(a, m.Config)
	p.Warn(m.compare(a, reach)...)
	var err error
	if p.Edits, err = m.describe(a, reach); err != nil {
		return p, &LayerError{WholeModel, err}
	}
	for _, f := range features {
		p.Edits = append(p.Edits, Edit{What: f.Edit.String()})
	}
	if m.Earlier != nil && !m.Carried && !m.Restored {
		var now []string
		for _, e := range p.Edits {
			now = append(now, e.What)
		}
		if w := m.Earlier.LeftOut(now); w != "" {
			p.Warn(w)
		}
	}
	for _, s := range a.Editable() {
		if s.Attention == nil {
			continue
		}
		edited, err := m.edit(s, layers[s.Layer], reach.skipped[s.Layer], p)
		if err != nil && s.Whole != "" && s.Written == nil { // as the rest of such a site, it stays the model's own
			s.KeepRotation(err)
			continue
		}
		if err != nil {
			return p, &LayerError{s.Layer, err}
		}
		p.Sites = append(p.Sites, edited)
	}
	return p, nil
}

// Compare returns warnings where the graph computes something else than config.json says and no
// method mends that.
func (m Methods) Compare(a *analysis.Analysis) []string {
	return m.compare(a, scalingScope(a, m.Config))
}

// edit applies the methods that are asked for to one site.
func (m Methods) edit(s *analysis.Site, l layer, unscaled bool, p *Plan) (*Site, error) {
	measured := s.Attention.Measured
	specs, err := m.of(l, unscaled)
	if err != nil {
		return nil, err
	}
	if err := measured.Allows(specs, s.Reason); err != nil {
		return nil, err
	}
	start, err := m.start(s)
	if err != nil {
		return nil, err
	}
	m.Context.Reachable = m.reachable(specs, start, measured.Attention)
	a, applied, warnings, err := m.apply(start, m.fresh(specs, start))
	if err != nil {
		return nil, err
	}
	p.Warn(warnings...)
	known := measured.Known(m.Context)
	if w := a.Unreached(m.Context.Reachable, known); w != "" {
		p.Warn(w)
	}
	a, warning, err := measure.BehindNorms(s.Attention.Site, a, measured.Attention)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		p.Warn(warning)
	}
	if err := measured.Keeps(a, m.RawCache); err != nil {
		return nil, err
	}
	if own := measured.Attention.Encoding.LengthDependent; measured.RotationOnly && a.Encoding.LengthDependent.Trained != 0 && (measured.Rotated == nil || !reflect.DeepEqual(a.Encoding.LengthDependent, own)) {
		return nil, fmt.Errorf("only its rotation is known, but length=run rotates keys when they are read from the cache; drop length=run: %s", s.Reason)
	}
	if a.Drawn.Range > 0 && measured.Layouts.Cached {
		return nil, lower.ErrCachedDraw
	}
	return &Site{Attention: *s.Attention, Layer: s.Layer, Reason: s.Reason, Want: a, Specs: specs, Applied: applied, Written: s.Written, Precision: m.Precision, Known: known}, nil
}

// apply applies the methods to a value. A site that rotates nothing has no frequencies to scale and no
// distances to map, but a mask. In a model of which no site rotates, the methods say what they can do with
// a bias by distance. Cross-attention is
// left as it is: its keys have neither positions nor places among the tokens.
func (m Methods) apply(a rope.Attention, specs []rope.Spec) (_ rope.Attention, applied []provenance.Edit, warnings []string, err error) {
	turns := len(a.Encoding.Frequencies) > 0
	placed := turns || !a.Distance.IsZero() && !m.rotates
	exact := m.Angles == ExactAngles
	if m.RawCache && turns {
		a.Cache = rope.Raw
	}
	for _, spec := range specs {
		if a.Cross || !placed && spec.Axis != rope.MaskAxis {
			continue
		}
		var settings []rope.Setting
		var more []string
		if a, settings, more, err = spec.Resolve(a, m.Context); err != nil {
			return a, nil, nil, ofMethod(spec, "", err)
		}
		warnings = append(warnings, more...)
		if m, err := rope.Lookup(spec.Axis, spec.Name); err == nil && m.Neutral {
			continue // it changes nothing
		}
		exact = exact || m.Angles == ScaledAngles && spec.Axis == rope.ScalingAxis
		applied = append(applied, provenance.Edit{What: spec.Axis.String(), Given: spec.String(), Settings: settings})
	}
	a.Encoding.ExactAngles = a.Encoding.ExactAngles || exact && turns
	return a, applied, warnings, nil
}

// reachable returns how many tokens a site is good for with its methods; 0 where it starts
// from a scaling that is none of them, whose reach is unknown.
func (m Methods) reachable(specs []rope.Spec, start, measured rope.Attention) int64 {
	c := m.Context
	_, unscaled := start.Encoding.Base()
	if !unscaled || m.Carried && !slices.Equal(start.Encoding.Frequencies, measured.Encoding.Frequencies) {
		c.Original = 0
	}
	return rope.Reachable(specs, c)
}

// start returns the value that the methods are applied to: what was measured, or, of a
// model that was rewritten before, what it was before that.
func (m Methods) start(s *analysis.Site) (rope.Attention, error) {
	partly := s.Attention.Measured.RotationOnly
	measured := s.Attention.Measured.Attention
	if w := s.Written; w != nil {
		if m.Carried {
			return w.Now, nil
		}
		return measured, nil
	}
	if m.Earlier == nil || m.Carried {
		return measured, nil
	}
	recorded := m.Earlier.Site(s.Layer, s.Node)
	if recorded == nil {
		return measured, nil
	}
	if partly && !recorded.RotationOnly { // a scale and mask that are not measured would look changed
		return measured, fmt.Errorf("only its rotation can be measured now, although the whole layer could be before the earlier rewrite: %s", s.Reason)
	}
	if m.OwnMasks && recorded.Original.Mask != measured.Mask {
		return measured, errors.New("an earlier rewrite with --target onnx changed its mask, which --target onnx cannot undo; start from the original file, or drop --target")
	}
	a := recorded.Original
	a.Sinks, a.QueryFactors, a.KeyFactors = measured.Sinks, measured.QueryFactors, measured.KeyFactors // the record has none
	return a, nil
}

// fresh returns the methods without base=original where the site that they are applied
// to has no scaling of its exporter's: the original values are the start anyway.
func (m Methods) fresh(specs []rope.Spec, a rope.Attention) []rope.Spec {
	if m.Earlier == nil {
		return specs
	}
	if _, _, scaled := rope.Recognise(a, m.Context); scaled || a.Encoding.LengthDependent.NTK > 0 {
		return specs
	}
	specs = slices.Clone(specs)
	for i, s := range specs {
		if s.Params[rope.BaseParam].Equal(rope.Text("original")) {
			specs[i].Params = maps.Clone(s.Params)
			delete(specs[i].Params, rope.BaseParam)
		}
	}
	return specs
}
