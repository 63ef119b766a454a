package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// startAgain reads what an earlier rewrite left in the model, checks that the request
// can start from it, and takes back what it did to inputs and outputs.
func (r *request) startAgain() (err error) {
	if r.earlier, err = readEarlier(r.model); err != nil {
		return err
	}
	e := r.earlier
	if r.opts.inspect {
		r.carried = r.earlier != nil // what stands in the model is what is shown
		return nil
	}
	if e == nil {
		if r.opts.Restore {
			return errors.New("there is nothing to restore: the model has no record of an earlier rewrite")
		}
		return nil
	}
	if err := e.usable(); err != nil {
		return err
	}
	if err := r.checkAgain(); err != nil {
		return err
	}
	if r.carried = r.opts.carries(); r.carried {
		r.opts = e.carry(r.opts)
	}
	if e.holdsOps() {
		e.undo(r.model)
	}
	return e.undoLogits(r.model)
}

// checkAgain refuses what cannot be asked of a model that was rewritten before.
func (r *request) checkAgain() error {
	o, e := r.opts, r.earlier
	edits := len(o.Edits)+len(o.LayerEdits) > 0
	features := o.Documents != "" || o.Separator != nil || o.FixedCapacity != 0 || o.LogitsPlaces != "" || o.RawCache || o.ExactAngles || o.Precision != ""
	switch {
	case o.Restore && (edits || features || o.carries()):
		return errors.New("--restore takes the earlier rewrite back and gives no method; leave the methods away, or leave --restore away: a rewrite starts from the original values by itself")
	case o.Restore && !e.holdsOps():
		return fmt.Errorf("the target %s changed nodes of the model's own, and the old ones are not kept; start from the original file (its graph has the SHA-256 %.12s…)", e.record.Target, e.record.Graph)
	case !o.Restore && !edits && !features:
		return errors.New("the model was rewritten before; give a method, or --restore to take the earlier ones back")
	case !e.holdsOps():
		return nil
	case o.Layers != nil:
		return errors.New("the model was rewritten before, and its other layers cannot be left as they are; give single layers their method with SPEC@LAYERS")
	case o.carries() && slices.ContainsFunc(e.record.Edits, func(d provenance.Edit) bool { return strings.HasPrefix(d.String(), "positions randomized") }):
		return errors.New("the random positions of the earlier rewrite cannot be carried on; leave base away and give all methods again")
	}
	return nil
}

// all returns every method that is asked for.
func (o Options) all() []rope.Spec {
	list := slices.Clone(o.Edits)
	for _, e := range o.LayerEdits {
		list = append(list, e.Spec)
	}
	return list
}

// carries reports whether methods are to start from what the model carries.
func (o Options) carries() bool {
	return o.Carried || slices.ContainsFunc(o.all(), func(s rope.Spec) bool { return s.Params[rope.BaseParam].Equal(rope.Text("carried")) })
}

// carry adds what the earlier rewrite gave the model beside the edits of its sites.
func (e *earlier) carry(o Options) Options {
	for _, d := range e.record.Edits {
		switch {
		case d.What == "documents" && o.Documents == "" && o.Separator == nil:
			if name := d.Setting("input"); name.Kind() == rope.Word {
				o.Documents = name.String()
			} else {
				o.Separator = &Separator{Token: d.Setting("token").Integer(), Ends: strings.HasSuffix(d.Given, ",ends")}
			}
		case d.What == "kv" && o.FixedCapacity == 0:
			o.FixedCapacity, o.CacheLength = d.Setting("capacity").Integer(), d.Setting("input").String()
		case d.What == "logits" && o.LogitsPlaces == "":
			o.LogitsPlaces = d.Setting("input").String()
		}
	}
	return o
}

// fill completes what a caller said of the model with what the earlier rewrite knew of it.
func (e *earlier) fill(known rope.Context) rope.Context {
	c := e.record.Configuration
	return modelconfig.Config{Original: c.Trained, Theta: c.Theta}.Fill(known)
}

// start returns the value that the methods are applied to: what was measured, or, of a
// model that was rewritten before, what it was before that.
func (r *request) start(f measure.Attention, site Site) (rope.Attention, error) {
	measured := f.Measured.Attention
	if w := r.written[site.Layer]; w != nil {
		if r.carried {
			return w.now, nil
		}
		return measured, nil
	}
	if r.earlier == nil || r.carried {
		return measured, nil
	}
	original := r.earlier.original(site)
	if original == nil {
		return measured, nil
	}
	if r.backend.keepsAttention() && original.Mask != measured.Mask {
		return measured, fmt.Errorf("an earlier rewrite with the target onnx gave it another mask, which the target onnx cannot take out; start from the original file, or leave --target away")
	}
	a := *original
	a.Sinks, a.QueryFactors, a.KeyFactors = measured.Sinks, measured.QueryFactors, measured.KeyFactors // the record has none
	return a, nil
}

// original returns what the record says that a site of the model's own nodes was; nil
// where it says nothing.
func (e *earlier) original(s Site) *rope.Attention {
	for i, r := range e.record.Sites {
		if at := slices.Index(r.Layers, s.Layer); at >= 0 && r.Nodes[at] == s.Node {
			return &e.record.Sites[i].Original
		}
	}
	return nil
}

// fresh returns the methods without base=original where the site that they are applied
// to carries no scaling of its exporter's: the original values are the start anyway.
func (r *request) fresh(specs []rope.Spec, a rope.Attention) []rope.Spec {
	if r.earlier == nil {
		return specs
	}
	if _, _, scaled := rope.Recognise(a, r.opts.Context); scaled || a.Encoding.LengthDependent.NTK > 0 {
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

// warnLeftOut says which methods of the earlier rewrite this one does not have.
func (r *request) warnLeftOut(report *Report) {
	if r.earlier != nil && !r.carried && !r.opts.Restore {
		if w := r.earlier.leftOut(report.Edits); w != "" {
			report.warn(w)
		}
	}
}

// leftOut says which methods of the earlier rewrite are not among those of this one.
func (e *earlier) leftOut(now []string) string {
	var texts []string
	for _, d := range e.record.Edits {
		if d.What == "precision" {
			continue // it is kept, or another one was asked for
		}
		if !slices.ContainsFunc(now, func(text string) bool { return strings.HasPrefix(text, d.String()) }) {
			texts = append(texts, d.String())
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("this rewrite starts from the values before the earlier one and leaves that one's methods out: %s. Give them again, or --base carried, which starts from what the model has", strings.Join(ir.Unique(texts), ", "))
}
