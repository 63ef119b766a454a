package rewrite

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/internal/version"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// record returns the record of the rewrite for the model's metadata. before are the original
// inputs and outputs.
func (r *request) record(v values, before shapes) *provenance.Record {
	known := r.methods.Context
	out := &provenance.Record{
		Version:       provenance.Version,
		Tool:          version.This().String(),
		Target:        string(cmp.Or(r.opts.Target, Ops)),
		Graph:         hex.EncodeToString(r.digest[:]),
		Configuration: provenance.Configuration{Trained: known.Original, Theta: known.Theta, Context: known.Length},
		Edits:         r.recordedEdits(v),
	}
	out.ProvenWith = v.proving
	out.AddedInputs, out.AddedOutputs = added(v.source.model, before)
	out.Buffers = changedShapes(v.source.model, before)
	merged := map[siteKey]int{}
	for _, e := range v.plan.Sites {
		s := r.recordedSite(e, siteOf(v.analysis.Sites[e.Layer]))
		s.Ops, s.PositionIDs = nil, nil
		if node := e.Change.Node(); node != nil && e.Form.IsOp() {
			out.OpSpec = max(out.OpSpec, node.Int("spec_version", 0))
			s.Ops = []string{node.Name}
			if op, _ := e.Change.Op(); op != nil && e.Binding.Positions() != op.PositionIDs {
				s.PositionIDs = []string{e.Binding.Positions()}
			}
		}
		if s.Proof != nil {
			out.MaxError = max(out.MaxError, s.Proof.MaxError)
		}
		out.Sites = merge(out.Sites, s, merged)
	}
	for _, s := range v.analysis.Sites {
		if s.Unchanged != "" {
			out.Kept = append(out.Kept, provenance.Kept{Layer: s.Layer, Node: s.Node, Scope: s.Scope, Op: s.Op, Reason: s.Reason})
		}
	}
	if r.earlier != nil {
		r.keepEarlier(out)
	}
	return out
}

// keepEarlier copies from the earlier record what it knows of the original model, and the context of
// methods that are added to.
func (r *request) keepEarlier(out *provenance.Record) {
	was := r.earlier.Record
	context := out.Configuration.Context
	if r.methods.Carried {
		context = cmp.Or(context, was.Configuration.Context)
	}
	out.Graph, out.Configuration = was.Graph, was.Configuration
	out.Configuration.Context = context
	if r.earlier.HoldsOps() {
		out.Kept, out.ProvenWith = was.Kept, was.ProvenWith
	}
}

// recordedSite returns what was measured of one site, before any edit.
func (r *request) recordedSite(e *plan.Site, s Site) provenance.Site {
	if e.Written != nil {
		w := *e.Written.Record
		w.Layers, w.Nodes, w.Form, w.Computes = []int{e.Layer}, []string{s.Node}, string(e.Form), computes(e)
		return w
	}
	out := provenance.Site{
		Layers: []int{e.Layer}, Nodes: []string{s.Node}, Scope: s.Scope,
		Op: s.Op, Original: e.Measured.Attention, Cache: recordedCache(s.Cache),
		Normed:        [2]bool{e.Site.Query.Normed(), e.Site.Key.Normed()},
		AfterRotation: s.AfterRotation, Positions: s.Positions, Unknown: s.Unknown, RotationOnly: s.RotationOnly, Reason: s.Reason,
		Latent: e.Measured.Latent != nil,
		Form:   string(e.Form), Computes: computes(e),
		Proof: s.Proof,
	}
	if r.earlier != nil {
		if recorded := r.earlier.Site(s.Layer, s.Node); recorded != nil {
			out.Original = recorded.Original
		}
	}
	return out
}

// computes is what a site computes, for the record, where its nodes do not show it.
func computes(e *plan.Site) *rope.Attention {
	if e.Form.IsOp() {
		return nil // which tells it
	}
	encoding := e.Want.Encoding
	hidden := e.Changes() && (encoding.Turning() == 0 || encoding.LengthDependent.Trained > 0) // from a measurement
	if e.Form.Told() && !hidden {
		return nil
	}
	a := e.Want
	return &a
}

// siteKey tells sites of different values apart.
type siteKey struct {
	value string // all that does not belong to one layer, as JSON
	moved bool   // a method gave the op other positions
}

// merge adds a site to those of the same value. merged says where in the list they are.
func merge(list []provenance.Site, s provenance.Site, merged map[siteKey]int) []provenance.Site {
	value := s
	value.Layers, value.Nodes, value.Ops, value.PositionIDs = nil, nil, nil, nil
	text, _ := json.Marshal(value) // provenance.Write does so once more, and says what fails
	key := siteKey{string(text), s.PositionIDs != nil}
	i, ok := merged[key]
	if !ok {
		merged[key] = len(list)
		return append(list, s)
	}
	to := &list[i]
	to.Layers, to.Nodes, to.Ops = append(to.Layers, s.Layers...), append(to.Nodes, s.Nodes...), append(to.Ops, s.Ops...)
	to.PositionIDs = append(to.PositionIDs, s.PositionIDs...)
	return list
}

// kinds are what an edit can change, in the order in which records list edits: the
// axes of methods first.
var kinds = []string{rope.ScalingAxis.String(), rope.PositionsAxis.String(), rope.MaskAxis.String(), "angles", "cache", "precision", "documents", "kv", "logits", "opset", "fallback"}

// recordedEdits returns the methods as the sites had them, each once with its layers,
// and what the features add.
func (r *request) recordedEdits(v values) []provenance.Edit {
	var list []provenance.Edit
	add := func(d provenance.Edit, layer int) {
		for i := range list {
			if to := &list[i]; sameEdit(*to, d) {
				to.Layers = append(to.Layers, layer)
				return
			}
		}
		d.Layers = []int{layer}
		list = append(list, d)
	}
	if r.methods.Carried {
		for _, d := range r.earlier.Record.Edits {
			if slices.Contains(kinds[:3], d.What) { // the rest is seen of this rewrite itself
				list = append(list, d)
			}
		}
	}
	for _, e := range v.plan.Sites {
		for _, d := range e.Applied {
			add(d, e.Layer)
		}
		if e.Want.Encoding.ExactAngles && !e.Measured.Attention.Encoding.ExactAngles {
			add(provenance.Edit{What: "angles", Given: "exact"}, e.Layer)
		}
		if e.IsRaw() {
			add(provenance.Edit{What: "cache", Given: "raw"}, e.Layer)
		}
		if e.IsFast() {
			add(provenance.Edit{What: "precision", Given: plan.Fast}, e.Layer)
		}
		for _, f := range v.plan.Features {
			if !e.Want.Cross {
				add(f.Edit, e.Layer)
			}
		}
		if raised := v.source.raised; raised != nil {
			add(provenance.Edit{What: "opset", Given: strconv.FormatInt(raised.To, 10)}, e.Layer)
		}
		if r.opts.Output.NoFallback && e.Change.Node() != nil && e.Form.IsOp() {
			add(provenance.Edit{What: "fallback", Given: "none"}, e.Layer)
		}
	}
	slices.SortStableFunc(list, func(a, b provenance.Edit) int {
		return cmp.Compare(slices.Index(kinds, a.What), slices.Index(kinds, b.What))
	})
	for i, d := range list {
		for _, e := range v.plan.Edits {
			if e.What == d.String() && e.Note != "" {
				list[i].Note = e.Note
			}
		}
	}
	return list
}

// sameEdit reports whether two edits differ in their layers alone.
func sameEdit(a, b provenance.Edit) bool {
	a.Layers, b.Layers = nil, nil
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// shapes are the inputs and outputs of a graph by name; an input can be given as an output, too.
type shapes struct{ inputs, outputs map[string]*onnx.ValueInfo }

func shapesOf(m *onnx.Model) shapes {
	byName := func(list []*onnx.ValueInfo) map[string]*onnx.ValueInfo {
		of := map[string]*onnx.ValueInfo{}
		for _, v := range list {
			of[v.Name] = v
		}
		return of
	}
	return shapes{byName(m.Graph.Inputs), byName(m.Graph.Outputs)}
}

// added returns which inputs and outputs are new.
func added(m *onnx.Model, before shapes) (inputs, outputs []string) {
	for _, v := range m.Graph.Inputs {
		if before.inputs[v.Name] == nil {
			inputs = append(inputs, v.Name)
		}
	}
	for _, v := range m.Graph.Outputs {
		if before.outputs[v.Name] == nil {
			outputs = append(outputs, v.Name)
		}
	}
	return inputs, outputs
}

// changedShapes returns which parts of the cache have another size or element type now.
func changedShapes(m *onnx.Model, before shapes) (buffers []provenance.Buffer) {
	for i, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		old := before.outputs[v.Name]
		if i < len(m.Graph.Inputs) {
			old = before.inputs[v.Name]
		}
		if old == nil || len(old.Shape) != 4 || len(v.Shape) != 4 || old.Shape[2] == v.Shape[2] && old.Type == v.Type {
			continue
		}
		size, typ := old.Shape[2], ""
		if old.Type != v.Type {
			typ = old.Type.String()
		}
		i := slices.IndexFunc(buffers, func(b provenance.Buffer) bool { return b.Dim() == size && b.Type == typ })
		if i < 0 {
			i = len(buffers)
			buffers = append(buffers, provenance.Buffer{Param: size.Param, Value: size.Value, Type: typ})
		}
		buffers[i].Values = append(buffers[i].Values, v.Name)
	}
	return buffers
}
