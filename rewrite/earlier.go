package rewrite

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// earlier is what an earlier rewrite left in a model.
type earlier struct {
	record *provenance.Record // nil where the model has none
	ops    []*onnx.Node       // of the op, in the order of the graphs
}

// writtenOp is one op that an earlier rewrite put into the model.
type writtenOp struct {
	node      *onnx.Node
	scope     *site.Scope
	op        customop.RotaryAttention
	positions string         // see provenance.Site
	now       rope.Attention // what the op computes as it stands
	record    *provenance.Site
	place     int // in the lists of the record's site
	layer     int
}

// readEarlier returns what an earlier rewrite left in m, nil where there was none.
func readEarlier(m *onnx.Model) (*earlier, error) {
	e := &earlier{}
	for n := range m.Graph.AllNodes() {
		if site.IsOp(n) {
			e.ops = append(e.ops, n)
		}
	}
	record, err := provenance.Read(m)
	switch {
	case errors.Is(err, provenance.ErrNone) && len(e.ops) == 0:
		return nil, nil
	case errors.Is(err, provenance.ErrNone):
		return e, nil
	case err != nil:
		return nil, err
	}
	e.record = record
	return e, nil
}

// usable refuses a model from whose record a rewrite cannot start.
func (e *earlier) usable() error {
	if e.record == nil {
		return fmt.Errorf("%w that is not rewritten already (%d %s nodes are of an earlier run, and the model has no record of what it was before); start from the original file", ErrNoAttention, len(e.ops), customop.Domain)
	}
	names := 0
	for _, s := range e.record.Sites {
		names += len(s.Ops)
	}
	if names != len(e.ops) {
		return fmt.Errorf("the model's record names %d nodes of the op, and the model has %d: another program changed it; start from the original file (its graph has the SHA-256 %.12s…)", names, len(e.ops), e.record.Graph)
	}
	if layer, ok := e.replaced(); ok {
		return fmt.Errorf("an earlier rewrite with the target %s wrote layer %d in other nodes than the model's own, which are not taken out again; start from the original file (its graph has the SHA-256 %.12s…)", e.record.Target, layer, e.record.Graph)
	}
	added := slices.DeleteFunc(slices.Clone(e.record.AddedInputs), e.placesLogits) // which can be taken out
	if !e.holdsOps() && len(added) > 0 {
		return fmt.Errorf("an earlier rewrite with the target onnx gave the model's own nodes the input %q, which cannot be taken out; start from the original file (its graph has the SHA-256 %.12s…)", added[0], e.record.Graph)
	}
	return nil
}

// holdsOps reports whether the earlier rewrite put the op into the model, and did not
// change the model's own nodes.
func (e *earlier) holdsOps() bool { return len(e.ops) > 0 }

// replaced returns the first layer that stands there as other nodes than the op or the
// model's own.
func (e *earlier) replaced() (layer int, ok bool) {
	return e.first(func(s provenance.Site) bool { return Form(s.Form).replaced() })
}

// first is the first layer of the record of which something holds.
func (e *earlier) first(holds func(provenance.Site) bool) (layer int, ok bool) {
	if e.record == nil {
		return 0, false
	}
	i := slices.IndexFunc(e.record.Sites, holds)
	if i < 0 {
		return 0, false
	}
	return e.record.Sites[i].Layers[0], true
}

// undo gives the graph the inputs and outputs back that it had before the earlier
// rewrite. Its ops are replaced later.
func (e *earlier) undo(m *onnx.Model) {
	for _, name := range e.record.AddedInputs {
		m.Graph.RemoveInput(name)
	}
	for _, b := range e.record.Buffers {
		resizeCaches(m.Graph, func(name string) bool { return slices.Contains(b.Values, name) }, b.Dim())
	}
}

// read reads the ops that the record describes, in the order of the layers. A layer that
// was kept is nil.
func (e *earlier) read(m *onnx.Model) ([]*writtenOp, error) {
	scopes, err := site.Scopes(m)
	if err != nil {
		return nil, err
	}
	type place struct{ scope, name string } // graphs inside nodes may have nodes of the same name
	ops, scopeOf := map[place]*onnx.Node{}, map[place]*site.Scope{}
	for _, s := range scopes {
		for _, n := range s.Graph.Nodes {
			if site.IsOp(n) {
				ops[place{s.Where, n.Name}], scopeOf[place{s.Where, n.Name}] = n, s
			}
		}
	}
	list := make([]*writtenOp, e.record.Layers())
	for i := range e.record.Sites {
		s := &e.record.Sites[i]
		for k, name := range s.Ops {
			at := place{s.Scope, name}
			if ops[at] == nil {
				return nil, fmt.Errorf("the model's record names the node %q, which the model does not have: another program changed it; start from the original file", name)
			}
			w := &writtenOp{node: ops[at], scope: scopeOf[at], record: s, place: k, layer: s.Layers[k]}
			if w.op, err = definition.Read(w.node); err != nil {
				return nil, err
			}
			if w.now, err = lower.Value(w.op, s.Original); err != nil {
				return nil, fmt.Errorf("layer %d: %w; start from the original file", w.layer, err)
			}
			w.positions = w.op.PositionIDs
			if s.PositionIDs != nil {
				w.positions = s.PositionIDs[k]
			}
			list[w.layer] = w
		}
	}
	return list, nil
}

// sites fills the report with the sites of the record and returns those that hold the
// op, ready to be edited.
func (e *earlier) sites(m *onnx.Model, report *Report) ([]measure.Attention, map[int]*writtenOp, error) {
	list, err := e.read(m)
	if err != nil {
		return nil, nil, err
	}
	report.Again = true
	var sites []measure.Attention
	written := map[int]*writtenOp{}
	for layer, w := range list {
		if w == nil {
			report.Sites = append(report.Sites, e.kept(layer))
			continue
		}
		view := w.scope.View
		original := w.record.Original
		original.QueryFactors, original.KeyFactors = w.now.QueryFactors, w.now.KeyFactors // the record has none
		report.Sites = append(report.Sites, w.site())
		written[layer] = w
		sites = append(sites, measure.Attention{Index: layer, Scope: w.scope, Site: site.Written(view, w.node, w.op, w.record.Normed), Measured: &measure.Measured{
			Attention: original,
			Layouts:   &site.Layouts{Cached: w.op.PastKey != ""},
			Position:  view.Inputs[w.positions],
			Mask:      view.Inputs[w.op.AttentionMask],
			Turned:    w.turned(),
		}})
	}
	report.number()
	return sites, written, nil
}

// kept returns the report of a layer that the earlier rewrite left as it was.
func (e *earlier) kept(layer int) Site {
	for _, k := range e.record.Kept {
		if k.Layer == layer {
			return Site{Node: k.Node, Scope: k.Scope, Op: k.Op, Status: Kept, Reason: "the earlier rewrite kept it: " + k.Reason}
		}
	}
	return Site{Status: Kept, Reason: "the model's record does not say what became of it"}
}

// site returns the report of the site as it was before any edit.
func (w *writtenOp) site() Site {
	s := SiteOf(*w.record)
	s.Node, s.ScoresOnly = w.record.Nodes[w.place], w.turned()
	return s
}

// turned reports whether the model's own nodes turn the query and key that the op reads.
func (w *writtenOp) turned() bool {
	return len(w.op.Frequencies) == 0 && w.op.Cross == 0 && site.RotatedBefore(w.scope.View, []string{w.op.Query, w.op.Key}) != nil
}

// SiteOf returns what a record says of a site, as it was before any edit, in the words
// of a report. The site stands for all layers of the record's.
func SiteOf(r provenance.Site) Site {
	s := Site{Scope: r.Scope, Op: r.Op, Status: Rewritten, Proof: r.Proof, AfterRotation: r.AfterRotation, Unknown: r.Unknown,
		RotationOnly: r.RotationOnly, Reason: r.Reason, Form: Form(r.Form), Cache: r.Cache, Mask: r.Original.Mask.String()}
	s.value(r.Original)
	return s
}

// binding returns what the op is lowered with once more.
func (w *writtenOp) binding(f measure.Attention) lower.Binding {
	return lower.Written(w.node, w.op, w.positions, f.Measured.Mask, w.record.Latent, w.record.Cache == fixedCacheName, w.record.Original.Encoding.LengthDependent)
}
