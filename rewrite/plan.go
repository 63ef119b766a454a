package rewrite

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// edited is a site with what it is to mean.
type edited struct {
	measure.Attention
	layer     int
	reason    string // why it could not be measured as a whole, where its rotation alone was
	want      rope.Attention
	specs     []rope.Spec       // methods that make it what is wanted
	applied   []provenance.Edit // the same, with every parameter resolved
	written   *writtenOp        // the op of an earlier rewrite that it is; nil for most
	precision string            // of its products; "" leaves what is there
	known     rope.Context      // of the model, as far as it holds for the site
	extra     lower.ExtraInputs // what the features give it
	binding   lower.Binding     // of the op, where there is to be one

	form       Form // how it is written
	formReason string
}

// plan is what a model's sites become.
type plan struct {
	sites    []edited
	changes  []lower.Change
	features []provenance.Edit
}

// plan applies the methods to the sites that are to be rewritten.
func (r *request) plan(ctx context.Context, sites []measure.Attention, report *Report) (*plan, error) {
	unscaled := unscaledLayers(sites, report.Sites, r.config)
	report.warn(r.config.compare(sites, r.opts, unscaled)...)
	report.carried(r.opts.Context)
	var err error
	if report.Edits, err = r.opts.describeEdits(report.Sites, unscaled); err != nil {
		return nil, &EditError{Layer: WholeModel, Err: err}
	}
	p := &plan{}
	for _, f := range r.features {
		p.features = append(p.features, f.edit())
		report.Edits = append(report.Edits, f.edit().String())
	}
	r.warnLeftOut(report)
	var list []*edited
	for _, f := range sites {
		site := report.Sites[f.Index]
		if site.Status == Kept {
			continue
		}
		e, err := r.edit(f, site, unscaled[site.Layer], report)
		if err != nil {
			return nil, &EditError{Layer: site.Layer, Err: err}
		}
		list = append(list, e)
	}
	if err := r.backend.bind(ctx, r, list); err != nil {
		return nil, err
	}
	raw, fast := false, false
	for _, e := range list {
		for _, feature := range r.features {
			if e.want.Cross {
				break // they are about the model's own tokens
			}
			if err := feature.site(r.model, e); err != nil {
				return nil, &EditError{Layer: e.layer, Err: err}
			}
		}
		if err := checkDocuments(e.want.Mask, e.extra.Documents); err != nil {
			return nil, &EditError{Layer: e.layer, Err: err}
		}
		raw = raw || e.want.Cache == rope.Raw && e.Measured.Layouts.Cached
		c, err := r.backend.lower(e)
		if unfit := (*EditError)(nil); errors.As(err, &unfit) {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", e.layer, err)
		}
		p.sites, p.changes = append(p.sites, *e), append(p.changes, c)
		fast = fast || e.isFast(c)
		report.Sites[e.Index].Form, report.Sites[e.Index].FormReason = e.form, e.formReason
	}
	if raw {
		report.Edits = append(report.Edits, "cache raw")
	}
	if fast {
		report.Edits = append(report.Edits, "precision fast")
		if !slices.ContainsFunc(list, (*edited).is16Bit) {
			report.warn("precision fast changes nothing here: the model's queries and keys are no numbers of 16 bits")
		}
	}
	return p, nil
}

// is16Bit reports whether a site's queries are in 16 bits.
func (e *edited) is16Bit() bool {
	return ir.Is16Bit(e.Scope.View.Element(e.Site.Query.Boundary))
}

// isFast reports whether a site becomes an op, or its body, that rounds before the product.
func (e *edited) isFast(c lower.Change) bool {
	op, _ := opOf(c)
	return op != nil && e.form != GroupQuery && op.Precision == fastPrecision
}

// edit applies the methods that are asked for to one site.
func (r *request) edit(f measure.Attention, site Site, unscaled bool, report *Report) (*edited, error) {
	specs, err := r.opts.editsOf(site.Layer, r.config.LayerTypes, unscaled)
	if err != nil {
		return nil, err
	}
	if err := f.Measured.Allows(specs, site.Reason); err != nil {
		return nil, err
	}
	start, err := r.start(f, site)
	if err != nil {
		return nil, err
	}
	a, applied, warnings, err := r.apply(start, r.fresh(specs, start))
	if err != nil {
		return nil, err
	}
	report.warn(warnings...)
	known := f.Measured.Known(r.opts.Context)
	if w := a.Unreached(rope.Reachable(specs, known), known); w != "" {
		report.warn(w)
	}
	a, warning, err := measure.BehindNorms(f.Site, a, f.Measured.Attention)
	if err != nil {
		return nil, err
	}
	if warning != "" {
		report.warn(warning)
	}
	if err := f.Measured.Keeps(a, r.opts.RawCache); err != nil {
		return nil, err
	}
	if f.Measured.RotationOnly && a.Encoding.LengthDependent.Trained != 0 {
		return nil, fmt.Errorf("its rotation alone is known, and length=run turns keys when they are read from the cache; leave length=run out: %s", site.Reason)
	}
	if a.Drawn.Range > 0 && f.Measured.Layouts.Cached {
		return nil, lower.ErrCachedDraw
	}
	return &edited{Attention: f, layer: site.Layer, reason: site.Reason, want: a, specs: specs, applied: applied, written: r.written[site.Layer], precision: r.opts.precision(), known: known}, nil
}

// apply applies the methods to a value. A site that turns nothing has no
// frequencies to scale and no distances to map, but a mask. Cross-attention is
// left as it is: its keys have neither positions nor places among the tokens.
func (r *request) apply(a rope.Attention, specs []rope.Spec) (_ rope.Attention, applied []provenance.Edit, warnings []string, err error) {
	turns := len(a.Encoding.Frequencies) > 0
	a.Encoding.ExactAngles = a.Encoding.ExactAngles || r.opts.ExactAngles && turns
	if r.opts.RawCache && turns {
		a.Cache = rope.Raw
	}
	for _, spec := range specs {
		if a.Cross || !turns && spec.Axis != rope.MaskAxis {
			continue
		}
		var settings []rope.Setting
		var more []string
		if a, settings, more, err = spec.Resolve(a, r.opts.Context); err != nil {
			return a, nil, nil, err
		}
		warnings = append(warnings, more...)
		if m, err := rope.Lookup(spec.Axis, spec.Name); err == nil && m.Neutral {
			continue // it changes nothing
		}
		applied = append(applied, provenance.Edit{What: spec.Axis.String(), Given: spec.String(), Settings: settings})
	}
	return a, applied, warnings, nil
}

// change says what becomes of the site in the model.
func (e *edited) change(nodes []*onnx.Node, constants []*onnx.Tensor) lower.Change {
	return lower.Change{Scope: e.Scope, Site: e.Site, Mask: e.Measured.Mask, Reads: e.want.Mask,
		Edited: e.changes(), Nodes: nodes, Constants: constants}
}

// changes reports whether the site is to compute something else than it does.
func (e *edited) changes() bool { return !reflect.DeepEqual(e.want, e.Measured.Attention) }

// replaces reports whether a site is to compute something else than it does, or to do so by
// other nodes than the op that stands there.
func (p *plan) replaces() bool {
	return slices.ContainsFunc(p.sites, func(e edited) bool { return e.changes() || e.written != nil })
}
